#include "server/routes.h"

#include "server/chat_reply.h"
#include "server/chat_request.h"
#include "server/completion_reply.h"
#include "server/completion_request.h"
#include "server/messages_reply.h"
#include "server/messages_request.h"
#include "server/responses_reply.h"
#include "server/responses_request.h"
#include "server/text_api.h"

namespace hadal {
namespace {

using Kind = Route::Kind;

constexpr Route kRoutes[] = {
    {.name = "chat",
     .method = "POST",
     .path = "/chat/completions",
     .kind = Kind::kGenerate,
     .parse = &ParseChatRequest,
     .plain = &MakePlainChatWriter,
     .streamed = &MakeStreamedChatWriter},
    {.name = "completions",
     .method = "POST",
     .path = "/completions",
     .kind = Kind::kGenerate,
     .parse = &ParseCompletionRequest,
     .plain = &MakePlainCompletionWriter,
     .streamed = &MakeStreamedCompletionWriter},
    {.name = "messages",
     .method = "POST",
     .path = "/messages",
     .kind = Kind::kGenerate,
     .dialect = ApiDialect::kAnthropic,
     .parse = &ParseMessagesRequest,
     .plain = &MakePlainMessagesWriter,
     .streamed = &MakeStreamedMessagesWriter},
    {.name = "count_tokens",
     .method = "POST",
     .path = "/messages/count_tokens",
     .kind = Kind::kCompute,
     .dialect = ApiDialect::kAnthropic,
     .compute = &CountMessagesTokens},
    {.name = "responses",
     .method = "POST",
     .path = "/responses",
     .kind = Kind::kGenerate,
     .parse = &ParseResponsesRequest,
     .plain = &MakePlainResponsesWriter,
     .streamed = &MakeStreamedResponsesWriter},
    {.name = "tokenize",
     .method = "POST",
     .path = "/tokenize",
     .kind = Kind::kCompute,
     .compute = &TokenizeText},
    {.name = "detokenize",
     .method = "POST",
     .path = "/detokenize",
     .kind = Kind::kCompute,
     .compute = &DetokenizeIds},
    {.name = "render",
     .method = "POST",
     .path = "/render",
     .kind = Kind::kCompute,
     .compute = &RenderRequest},
    {.name = "models", .method = "GET", .path = "/models", .kind = Kind::kModels},
    {.name = "model", .method = "GET", .path = "/models/", .kind = Kind::kModel},
    {.name = "metrics",
     .method = "GET",
     .path = "/metrics",
     .kind = Kind::kMetrics,
     .needs_engine = false},
    {.name = "health",
     .method = "GET",
     .path = "/health",
     .kind = Kind::kHealth,
     .needs_key = false,
     .needs_engine = false},
    {.name = "version",
     .method = "GET",
     .path = "/version",
     .kind = Kind::kVersion,
     .needs_key = false,
     .needs_engine = false},
};

// The page's files; a path of an API is never among them.
constexpr Route kPage = {.name = "page",
                         .method = "GET",
                         .path = "/",
                         .kind = Kind::kPage,
                         .needs_key = false,
                         .needs_engine = false};

bool Fits(const Route& route, std::string_view path) {
  if (route.kind == Kind::kModel)
    return path.size() > route.path.size() && path.starts_with(route.path);
  return path == route.path;
}

}  // namespace

std::string_view PlainPath(std::string_view path) {
  for (const std::string_view prefix : {"/beta", "/v1"}) {
    if (path.starts_with(prefix) && path.substr(prefix.size()).starts_with('/'))
      path.remove_prefix(prefix.size());
  }
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

const Route* FindRoute(std::string_view method, std::string_view path, std::string_view* allowed) {
  *allowed = {};
  path = PlainPath(path);
  for (const Route& route : kRoutes) {
    if (!Fits(route, path)) continue;
    if (route.method == method) return &route;
    *allowed = route.method;
  }
  return allowed->empty() && method == kPage.method ? &kPage : nullptr;
}

ApiDialect DialectOf(std::string_view path) {
  return PlainPath(path).starts_with("/messages") ? ApiDialect::kAnthropic : ApiDialect::kOpenAi;
}

}  // namespace hadal
