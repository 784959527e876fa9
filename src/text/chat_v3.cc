// The first template of DeepSeek-V3 (December 2024), with its defects, because prompts of that
// checkpoint are defined by it:
// - the list of calls is opened once in a conversation and closed after every call but the first;
// - results are opened once in a conversation, too;
// - calls beside a content (even an empty one) are not written;
// - after a result no assistant marker follows.
#include "text/chat_renderers.h"
#include "text/markers.h"
#include "text/prompt_builder.h"

namespace hadal {
namespace {

using namespace markers;

class V3Renderer {
 public:
  explicit V3Renderer(const Conversation& conversation) : conversation_(conversation) {}

  Prompt Render() {
    prompt_.Markup(kBegin).Text(JoinedSystemText(conversation_));
    for (const ChatMessage& message : conversation_.messages) {
      if (message.role == "user") {
        follows_result_ = false;
        prompt_.Markup(kUser).Text(message.content);
      } else if (message.role == "assistant" && !message.has_content && !message.is_prefix) {
        AddCalls(message);
      } else if (message.role == "assistant") {
        AddAnswer(message);
      } else if (message.role == "tool") {
        AddResult(message);
      }
    }
    if (follows_result_) {
      prompt_.Markup(kOutputsEnd);
    } else if (conversation_.options.add_generation_prompt &&
               !ContinuesLastMessage(conversation_)) {
      prompt_.Markup(kAssistant);
    }
    return prompt_.Take();
  }

 private:
  void AddCalls(const ChatMessage& message) {
    follows_result_ = false;
    for (const ToolCall& call : message.tool_calls) {
      const bool is_first = !has_calls_;
      has_calls_ = true;
      if (is_first) {
        prompt_.Markup(kAssistant).Markup(kCallsBegin);
      } else {
        prompt_.Markup("\n");
      }
      prompt_.Markup(kCallBegin).Markup("function").Markup(kSeparator).Text(call.name);
      prompt_.Markup("\n```json\n").Text(call.arguments).Markup("\n```").Markup(kCallEnd);
      if (!is_first) prompt_.Markup(kCallsEnd).Markup(kEnd);
    }
  }

  void AddAnswer(const ChatMessage& message) {
    prompt_.Markup(follows_result_ ? kOutputsEnd : kAssistant).Text(message.content);
    follows_result_ = false;
    if (!message.is_prefix) prompt_.Markup(kEnd);
  }

  void AddResult(const ChatMessage& message) {
    follows_result_ = true;
    prompt_.Markup(has_results_ ? "\n" : kOutputsBegin);
    has_results_ = true;
    prompt_.Markup(kOutputBegin).Text(message.content).Markup(kOutputEnd);
  }

  const Conversation& conversation_;
  PromptBuilder prompt_;
  bool has_calls_ = false;
  bool has_results_ = false;
  bool follows_result_ = false;
};

}  // namespace

Result<Prompt> RenderV3(const Conversation& conversation) {
  return V3Renderer(conversation).Render();
}

}  // namespace hadal
