#include "text/chat_layout.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace hadal {
namespace {

constexpr std::array<std::pair<ChatLayout, std::string_view>, 9> kNames = {{
    {ChatLayout::kV2, "v2"},
    {ChatLayout::kV25, "v2.5"},
    {ChatLayout::kV3, "v3"},
    {ChatLayout::kV30324, "v3-0324"},
    {ChatLayout::kR1, "r1"},
    {ChatLayout::kR10528, "r1-0528"},
    {ChatLayout::kV31, "v3.1"},
    {ChatLayout::kV32Exp, "v3.2-exp"},
    {ChatLayout::kV32, "v3.2"},
}};

bool Contains(std::string_view text, std::string_view piece) {
  return text.find(piece) != std::string_view::npos;
}

// The published templates differ in a few words each, which hold through reformatting. The order
// matters: each test relies on those above it.
std::optional<ChatLayoutChoice> ChooseByTemplate(std::string_view text,
                                                 std::string_view model_type) {
  if (Contains(text, "｜DSML｜")) {
    return ChatLayoutChoice{ChatLayout::kV32, "the chat template writes DSML calls"};
  }
  const bool has_turn_tokens = Contains(text, "<｜User｜>") && Contains(text, "<｜Assistant｜>");
  if (!has_turn_tokens) {
    if (!Contains(text, "User: ") || !Contains(text, "Assistant:")) return std::nullopt;
    return ChatLayoutChoice{ChatLayout::kV2, "the chat template writes \"User: \" in plain text"};
  }
  const bool closes_thinking = Contains(text, "</think>");
  if (closes_thinking && Contains(text, "thinking")) {
    if (model_type == "deepseek_v32") {
      return ChatLayoutChoice{ChatLayout::kV32Exp,
                              "the chat template has a thinking switch and model_type is "
                              "deepseek_v32"};
    }
    return ChatLayoutChoice{ChatLayout::kV31, "the chat template has a thinking switch"};
  }
  if (Contains(text, "<｜Assistant｜><think>")) {
    return ChatLayoutChoice{ChatLayout::kR1, "the chat template always opens the reasoning"};
  }
  if (closes_thinking) {
    return ChatLayoutChoice{ChatLayout::kR10528,
                            "the chat template drops old reasoning and opens none"};
  }
  if (Contains(text, "is_last_user")) {
    return ChatLayoutChoice{ChatLayout::kV30324,
                            "the chat template writes the assistant marker with the user's turn"};
  }
  if (Contains(text, "is_first_sp") || model_type == "deepseek_v3") {
    return ChatLayoutChoice{ChatLayout::kV3, "the chat template is the first one of V3"};
  }
  return ChatLayoutChoice{ChatLayout::kV25, "the chat template keeps only one system message"};
}

ChatLayoutChoice ChooseByModelType(std::string_view model_type, bool has_think_tokens) {
  if (model_type == "deepseek_v2") {
    return {ChatLayout::kV2, "model_type is deepseek_v2"};
  }
  if (model_type == "deepseek_v32") {
    return {ChatLayout::kV32, "model_type is deepseek_v32"};
  }
  if (has_think_tokens) {
    return {ChatLayout::kV31, "the vocabulary has tokens for thinking"};
  }
  return {ChatLayout::kV3, "the vocabulary has no tokens for thinking"};
}

}  // namespace

std::string_view ChatLayoutName(ChatLayout layout) {
  for (const auto& [candidate, name] : kNames) {
    if (candidate == layout) return name;
  }
  return "unknown";
}

std::optional<ChatLayout> FindChatLayout(std::string_view name) {
  for (const auto& [layout, candidate] : kNames) {
    if (candidate == name) return layout;
  }
  return std::nullopt;
}

ChatLayoutChoice ChooseChatLayout(std::string_view chat_template, std::string_view model_type,
                                  bool has_think_tokens) {
  ChatLayoutChoice fallback = ChooseByModelType(model_type, has_think_tokens);
  if (chat_template.empty()) {
    fallback.reason = fmt::format("there is no chat template and {}", fallback.reason);
    return fallback;
  }
  if (auto choice = ChooseByTemplate(chat_template, model_type)) return *std::move(choice);
  fallback.reason = fmt::format("the chat template is none that is known and {}", fallback.reason);
  return fallback;
}

}  // namespace hadal
