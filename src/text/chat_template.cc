#include "text/chat_template.h"

#include <fmt/format.h>

#include "text/chat_renderers.h"
#include "text/markers.h"
#include "text/prompt_builder.h"

namespace hadal {

Result<Prompt> RenderChat(ChatLayout layout, const Conversation& conversation) {
  switch (layout) {
    case ChatLayout::kV2:
      return RenderV2(conversation);
    case ChatLayout::kV25:
      return RenderV25(conversation);
    case ChatLayout::kV3:
      return RenderV3(conversation);
    case ChatLayout::kV30324:
      return RenderV30324(conversation);
    case ChatLayout::kR1:
      return RenderR1(conversation);
    case ChatLayout::kR10528:
      return RenderR10528(conversation);
    case ChatLayout::kV31:
    case ChatLayout::kV32Exp:
      return RenderV31(conversation);
    case ChatLayout::kV32:
      return RenderV32(conversation);
  }
  return Status::Internal("chat layout: expected one that exists");
}

std::optional<Prompt> ToolCallOpening(ChatLayout layout, std::string_view name) {
  using namespace markers;
  PromptBuilder prompt;
  switch (layout) {
    case ChatLayout::kV2:
      return std::nullopt;
    case ChatLayout::kV25:
    case ChatLayout::kV3:
    case ChatLayout::kV30324:
    case ChatLayout::kR1:
    case ChatLayout::kR10528:
      prompt.Markup(kCallsBegin).Markup(kCallBegin).Markup("function").Markup(kSeparator);
      if (!name.empty()) prompt.Text(name).Markup("\n```json\n");
      break;
    case ChatLayout::kV31:
    case ChatLayout::kV32Exp:
      prompt.Markup(kCallsBegin).Markup(kCallBegin);
      if (!name.empty()) prompt.Text(name).Markup(kSeparator);
      break;
    case ChatLayout::kV32:
      prompt.Markup("\n\n").Markup(kDsmlCallsBegin).Markup("\n").Markup(kDsmlInvoke);
      if (!name.empty()) prompt.Text(name).Markup("\">\n");
      break;
  }
  return prompt.Take();
}

bool WritesTools(ChatLayout layout) {
  return layout == ChatLayout::kV31 || layout == ChatLayout::kV32Exp || layout == ChatLayout::kV32;
}

bool HasThinkingSwitch(ChatLayout layout) { return WritesTools(layout); }

bool AlwaysThinks(ChatLayout layout) {
  return layout == ChatLayout::kR1 || layout == ChatLayout::kR10528;
}

Prompt RenderFillInTheMiddle(std::string_view prefix, std::string_view suffix) {
  PromptBuilder prompt;
  prompt.Markup(markers::kBegin).Markup(markers::kFimBegin).Text(prefix);
  prompt.Markup(markers::kFimHole).Text(suffix).Markup(markers::kFimEnd);
  return prompt.Take();
}

bool StartsInReasoning(ChatLayout layout, const Prompt& prompt) {
  if (layout == ChatLayout::kV2) return false;
  // Only what the template wrote counts, and of that the last mark.
  for (auto part = prompt.rbegin(); part != prompt.rend(); ++part) {
    if (!part->is_markup) continue;
    const size_t open = part->text.rfind(markers::kThink);
    const size_t close = part->text.rfind(markers::kEndThink);
    if (open == std::string::npos && close == std::string::npos) continue;
    if (open == std::string::npos) return false;
    return close == std::string::npos || close < open;
  }
  return false;
}

std::string JoinedSystemText(const Conversation& conversation) {
  std::string text;
  bool is_first = true;
  for (const ChatMessage& message : conversation.messages) {
    if (message.role != "system") continue;
    if (!is_first) text += "\n\n";
    is_first = false;
    text += message.content;
  }
  return text;
}

bool ContinuesLastMessage(const Conversation& conversation) {
  return !conversation.messages.empty() && conversation.messages.back().is_prefix;
}

Status MessageError(size_t idx, std::string_view problem) {
  return Status::InvalidArgument(fmt::format("messages[{}]: {}", idx, problem));
}

}  // namespace hadal
