// DeepSeek-V2, V2-Lite-Chat, Coder-V2-Instruct: turns in plain words. Specification, 9.6.
#include "text/chat_renderers.h"
#include "text/markers.h"
#include "text/prompt_builder.h"

namespace hadal {

Result<Prompt> RenderV2(const Conversation& conversation) {
  PromptBuilder prompt;
  prompt.Markup(markers::kBegin);
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const ChatMessage& message = conversation.messages[i];
    if (message.role == "system") {
      prompt.Text(message.content).Markup("\n\n");
    } else if (message.role == "user") {
      prompt.Markup("User: ").Text(message.content).Markup("\n\n");
    } else if (message.role == "assistant") {
      if (!message.tool_calls.empty()) {
        return MessageError(i, "expected no tool calls, since the layout v2 has no form for them");
      }
      prompt.Markup("Assistant: ").Text(message.content);
      if (!message.is_prefix) prompt.Markup(markers::kEnd);
    } else if (message.role == "tool") {
      return MessageError(i, "expected no tool result, since the layout v2 has no form for it");
    }
  }
  // No space after the colon: it belongs to the first token of the answer.
  if (conversation.options.add_generation_prompt && !ContinuesLastMessage(conversation)) {
    prompt.Markup("Assistant:");
  }
  return prompt.Take();
}

}  // namespace hadal
