// Messages to prompt, one function per model version behind RenderChat. Bytes are the contract:
// they are tested against the templates and encoders that DeepSeek published.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "text/chat_layout.h"
#include "text/chat_message.h"
#include "text/tokenizer.h"

namespace hadal {

// The prompt, begin token written out as its first part. kInvalidArgument names the message that
// the layout cannot express.
Result<Prompt> RenderChat(ChatLayout layout, const Conversation& conversation);

// How an answer begins that calls a tool at once: the call of `name`, or with no name up to where
// the model writes one. Nothing when the layout has no calls. Specification, 9.6.
std::optional<Prompt> ToolCallOpening(ChatLayout layout, std::string_view name);

// Whether the model is told of a conversation's tools. Others would never see them.
bool WritesTools(ChatLayout layout);

// Whether Conversation::options.thinking decides if the model reasons; these layouts came with
// those that write tools.
bool HasThinkingSwitch(ChatLayout layout);
// Whether the model reasons before every answer, whatever was asked.
bool AlwaysThinks(ChatLayout layout);

// Fill in the middle: begin token, <fim_begin> prefix <fim_hole> suffix <fim_end>.
// Specification, 9.6.
Prompt RenderFillInTheMiddle(std::string_view prefix, std::string_view suffix);

// Whether the model's text starts inside its reasoning, given the prompt that it continues.
bool StartsInReasoning(ChatLayout layout, const Prompt& prompt);

}  // namespace hadal
