// Which path is answered by what. A table: an API of another kind is a row here and its files.
#pragma once

#include <memory>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "server/api_call.h"
#include "server/api_error.h"
#include "server/reply_writer.h"

namespace hadal {

struct Route {
  enum class Kind { kHealth, kVersion, kMetrics, kModels, kModel, kCompute, kGenerate, kPage };

  std::string_view name;  // in metrics and logs
  std::string_view method;
  std::string_view path;  // without /v1 and /beta; of kModel and kPage the beginning
  Kind kind = Kind::kPage;
  bool needs_key = true;     // where keys were given
  bool needs_engine = true;  // turned away while the model loads and when the server stops
  ApiDialect dialect = ApiDialect::kOpenAi;

  // kGenerate: the request, and how its reply is written.
  Result<ApiCall> (*parse)(const Json& body, const ApiModel& model) = nullptr;
  std::unique_ptr<ReplyWriter> (*plain)(const ReplySetting& setting) = nullptr;
  std::unique_ptr<ReplyWriter> (*streamed)(const ReplySetting& setting) = nullptr;

  // kCompute: the reply's body.
  Result<Json> (*compute)(const Json& body, const ApiModel& model) = nullptr;
};

// The path as the table has it: without the prefixes under which OpenAI and DeepSeek serve the same
// (/v1, /beta, /beta/v1), and without a slash at its end.
std::string_view PlainPath(std::string_view path);

// The route of a request, or null; then `allowed` is the method that the path knows, empty when
// there is no such path.
const Route* FindRoute(std::string_view method, std::string_view path, std::string_view* allowed);

// How errors of that path are spelled.
ApiDialect DialectOf(std::string_view path);

}  // namespace hadal
