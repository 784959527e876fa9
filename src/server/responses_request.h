// /v1/responses of OpenAI's API, the part that needs no state: JSON to an ApiCall. docs/server.md
// lists every field.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "server/api_call.h"

namespace hadal {

// kInvalidArgument with the field's path, kNotFound for a model of another name.
Result<ApiCall> ParseResponsesRequest(const Json& body, const ApiModel& model);

}  // namespace hadal
