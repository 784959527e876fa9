#include "server/api_error.h"

#include <fmt/format.h>

namespace hadal {
namespace {

// A client that asks again sooner than this only makes the queue longer.
constexpr const char* kRetryAfterSeconds = "1";

std::string_view OpenAiType(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return http_status < 500 ? "invalid_request_error" : "server_error";
  }
}

std::string_view AnthropicType(int http_status) {
  switch (http_status) {
    case 413:
      return "request_too_large";
    case 503:
      return "overloaded_error";
    default:
      return http_status >= 500 ? "api_error" : OpenAiType(http_status);
  }
}

Json CodeOf(int http_status) {
  if (http_status == 401) return "invalid_api_key";
  if (http_status == 429) return "rate_limit_exceeded";
  return nullptr;
}

bool IsFieldCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '[' || c == ']';
}

}  // namespace

int HttpStatusOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kCorrupt:
    case StatusCode::kUnsupported:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kCancelled:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    case StatusCode::kIo:
    case StatusCode::kInternal:
      break;
  }
  return 500;
}

std::string_view FieldOf(std::string_view message) {
  size_t length = 0;
  while (length < message.size() && IsFieldCharacter(message[length])) ++length;
  return message.substr(length).starts_with(": ") ? message.substr(0, length) : std::string_view();
}

Json ErrorJson(ApiDialect dialect, int http_status, std::string_view message) {
  if (dialect == ApiDialect::kAnthropic) {
    return {{"type", "error"},
            {"error", {{"type", AnthropicType(http_status)}, {"message", message}}}};
  }
  const std::string_view field = http_status < 500 ? FieldOf(message) : std::string_view();
  return {{"error",
           {{"message", message},
            {"type", OpenAiType(http_status)},
            {"param", field.empty() ? Json() : Json(field)},
            {"code", CodeOf(http_status)}}}};
}

HttpReply ErrorReply(ApiDialect dialect, int http_status, std::string_view message) {
  HttpReply reply{.status = http_status,
                  .body = DumpJson(ErrorJson(dialect, http_status, message))};
  if (http_status == 429 || http_status == 503)
    reply.headers.push_back({"Retry-After", kRetryAfterSeconds});
  return reply;
}

HttpReply ErrorReply(ApiDialect dialect, const Status& status) {
  return ErrorReply(dialect, HttpStatusOf(status), status.message());
}

std::string ErrorEvent(ApiDialect dialect, const Status& status) {
  const std::string body = DumpJson(ErrorJson(dialect, HttpStatusOf(status), status.message()));
  if (dialect == ApiDialect::kAnthropic) return fmt::format("event: error\ndata: {}\n\n", body);
  return fmt::format("data: {}\n\n", body);
}

}  // namespace hadal
