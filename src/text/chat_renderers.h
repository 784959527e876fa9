// One function per layout; RenderChat calls the right one. Internal to text/.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/chat_message.h"
#include "text/tokenizer.h"

namespace hadal {

Result<Prompt> RenderV2(const Conversation& conversation);
Result<Prompt> RenderV25(const Conversation& conversation);
Result<Prompt> RenderV3(const Conversation& conversation);
Result<Prompt> RenderV30324(const Conversation& conversation);
Result<Prompt> RenderR1(const Conversation& conversation);
Result<Prompt> RenderR10528(const Conversation& conversation);
Result<Prompt> RenderV31(const Conversation& conversation);  // V3.2-Exp uses it too
Result<Prompt> RenderV32(const Conversation& conversation);

// Texts of all system messages, joined by an empty line.
std::string JoinedSystemText(const Conversation& conversation);

// True when the last message is an assistant's that the model shall continue.
bool ContinuesLastMessage(const Conversation& conversation);

// kInvalidArgument for message `idx`: "messages[3]: <problem>".
Status MessageError(size_t idx, std::string_view problem);

}  // namespace hadal
