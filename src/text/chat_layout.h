// Which layout of turns, tools and thinking a model version uses. docs/chat.md compares them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hadal {

enum class ChatLayout { kV2, kV25, kV3, kV30324, kR1, kR10528, kV31, kV32Exp, kV32 };

// "v2", "v2.5", "v3", "v3-0324", "r1", "r1-0528", "v3.1", "v3.2-exp", "v3.2".
std::string_view ChatLayoutName(ChatLayout layout);
std::optional<ChatLayout> FindChatLayout(std::string_view name);

struct ChatLayoutChoice {
  ChatLayout layout = ChatLayout::kV3;
  std::string reason;  // one sentence for `inspect` and the log
};

// From the checkpoint's own files: the chat template's text where there is one, else model_type and
// the vocabulary's markers. `model_type` may be empty.
ChatLayoutChoice ChooseChatLayout(std::string_view chat_template, std::string_view model_type,
                                  bool has_think_tokens);

}  // namespace hadal
