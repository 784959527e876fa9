// Messages to prompt, one function per model version behind RenderChat. Bytes are the contract:
// they are tested against the templates and encoders that DeepSeek published.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/chat_layout.h"
#include "text/chat_message.h"
#include "text/tokenizer.h"

namespace hadal {

// The prompt, begin token written out as its first part. kInvalidArgument names the message that
// the layout cannot express.
Result<Prompt> RenderChat(ChatLayout layout, const Conversation& conversation);

// Fill in the middle: begin token, <fim_begin> prefix <fim_hole> suffix <fim_end>.
// Specification, 9.6.
Prompt RenderFillInTheMiddle(std::string_view prefix, std::string_view suffix);

// Whether the model's text starts inside its reasoning, given the prompt that it continues.
bool StartsInReasoning(ChatLayout layout, const Prompt& prompt);

}  // namespace hadal
