// /v1/chat/completions: JSON to an ApiCall. docs/server.md lists every field and what becomes of
// it.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "server/api_call.h"
#include "text/chat_message.h"

namespace hadal {

// kInvalidArgument with the field's path, kNotFound for a model of another name. `body` was read
// with ParseJsonKeepingIntegers.
Result<ApiCall> ParseChatRequest(const Json& body, const ApiModel& model);

// messages and tools: roles, contents, calls and results that belong together. Results of tools are
// put into the order of their calls.
Result<Conversation> ParseChatMessages(const Json& body);

}  // namespace hadal
