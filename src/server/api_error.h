// From a Status to the error that a client sees: HTTP status, and JSON that names the field.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "server/http_message.h"

namespace hadal {

// How errors are spelled. OpenAI's form is DeepSeek's, too.
enum class ApiDialect { kOpenAi, kAnthropic };

// kInvalidArgument, kCorrupt, kUnsupported 400, kNotFound 404, kResourceExhausted 429, kCancelled
// 503, others 500.
int HttpStatusOf(const Status& status);

// The field that a message begins with ("messages[2].role: expected ..."); empty when it names
// none.
std::string_view FieldOf(std::string_view message);

// The body of an error.
Json ErrorJson(ApiDialect dialect, int http_status, std::string_view message);

HttpReply ErrorReply(ApiDialect dialect, int http_status, std::string_view message);
HttpReply ErrorReply(ApiDialect dialect, const Status& status);

// The error as the last event of a stream.
std::string ErrorEvent(ApiDialect dialect, const Status& status);

}  // namespace hadal
