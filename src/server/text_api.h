// /tokenize, /detokenize and /render: what the tokenizer and the chat layout do, without the model.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "server/api_call.h"

namespace hadal {

// {"prompt" | "text": text, "add_special_tokens"?, "specials"?, "return_token_strs"?} or
// {"messages", "tools"?, ...}: {"tokens", "count", "max_model_len", "token_strs"?}.
Result<Json> TokenizeText(const Json& body, const ApiModel& model);

// {"tokens": ids}: {"prompt", "text"}.
Result<Json> DetokenizeIds(const Json& body, const ApiModel& model);

// A chat request: {"prompt", "tokens", "count"}, what the model would read.
Result<Json> RenderRequest(const Json& body, const ApiModel& model);

}  // namespace hadal
