// /v1/completions: JSON to an ApiCall. docs/server.md lists every field and what becomes of it.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "server/api_call.h"

namespace hadal {

// A prompt is a text, a list of token ids, or a list of these; with a suffix the model fills in the
// middle. kInvalidArgument with the field's path, kNotFound for a model of another name.
Result<ApiCall> ParseCompletionRequest(const Json& body, const ApiModel& model);

}  // namespace hadal
