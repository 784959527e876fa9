// /v1/messages of Anthropic's API: JSON to an ApiCall. docs/server.md lists every field.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "server/api_call.h"

namespace hadal {

// kInvalidArgument with the field's path, kNotFound for a model of another name.
Result<ApiCall> ParseMessagesRequest(const Json& body, const ApiModel& model);

// /v1/messages/count_tokens: {"input_tokens": n}.
Result<Json> CountMessagesTokens(const Json& body, const ApiModel& model);

}  // namespace hadal
