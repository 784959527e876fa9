// The layouts that V2.5, V3-0324, R1 and R1-0528 share but for a few habits: turns between control
// tokens, arguments of calls in a fenced block. Specification, 9.6.
#include "text/chat_renderers.h"
#include "text/markers.h"
#include "text/prompt_builder.h"

namespace hadal {
namespace {

using namespace markers;

struct Habits {
  bool keeps_last_system_only = false;  // else all of them, joined
  bool marks_turn_with_user = false;    // the assistant marker is written with the user's message
  bool drops_old_reasoning = false;     // what stands before the last </think> of an answer
  bool has_reasoning = false;
  std::string_view opening = {};  // after the assistant marker at the end of the prompt
};

class FencedRenderer {
 public:
  FencedRenderer(const Conversation& conversation, const Habits& habits)
      : conversation_(conversation), habits_(habits) {}

  Prompt Render() {
    prompt_.Markup(kBegin).Text(habits_.keeps_last_system_only ? LastSystemText()
                                                               : JoinedSystemText(conversation_));
    for (const ChatMessage& message : conversation_.messages) {
      if (message.role == "user") {
        AddQuestion(message);
      } else if (message.role == "assistant") {
        AddAnswer(message);
      } else if (message.role == "tool") {
        AddResult(message);
      }
    }
    Close();
    return prompt_.Take();
  }

 private:
  std::string LastSystemText() const {
    std::string text;
    for (const ChatMessage& message : conversation_.messages) {
      if (message.role == "system") text = message.content;
    }
    return text;
  }

  void AddQuestion(const ChatMessage& message) {
    follows_result_ = false;
    prompt_.Markup(kUser).Text(message.content);
    if (habits_.marks_turn_with_user) prompt_.Markup(kAssistant);
    follows_user_ = true;
  }

  void AddAnswer(const ChatMessage& message) {
    if (follows_result_) {
      prompt_.Markup(kOutputsEnd);
    } else if (!habits_.marks_turn_with_user) {
      prompt_.Markup(kAssistant);
    }
    follows_result_ = follows_user_ = false;
    if (message.is_prefix) return AddPrefix(message);
    std::string_view content = message.content;
    const size_t close = content.rfind(kEndThink);
    if (habits_.drops_old_reasoning && close != std::string_view::npos) {
      content.remove_prefix(close + kEndThink.size());
    }
    prompt_.Text(content);
    if (!message.tool_calls.empty()) AddCalls(message);
    prompt_.Markup(kEnd);
  }

  // The model goes on inside the reasoning while there is no content yet.
  void AddPrefix(const ChatMessage& message) {
    if (habits_.has_reasoning && !message.reasoning_content.empty()) {
      prompt_.Markup(kThink).Markup("\n").Text(message.reasoning_content);
      if (!message.content.empty()) prompt_.Markup("\n").Markup(kEndThink).Markup("\n\n");
    }
    prompt_.Text(message.content);
  }

  void AddCalls(const ChatMessage& message) {
    has_results_ = false;
    prompt_.Markup(kCallsBegin);
    bool is_first = true;
    for (const ToolCall& call : message.tool_calls) {
      if (!is_first) prompt_.Markup("\n");
      is_first = false;
      prompt_.Markup(kCallBegin).Markup("function").Markup(kSeparator).Text(call.name);
      prompt_.Markup("\n```json\n").Text(call.arguments).Markup("\n```").Markup(kCallEnd);
    }
    prompt_.Markup(kCallsEnd);
  }

  void AddResult(const ChatMessage& message) {
    prompt_.Markup(has_results_ ? "\n" : kOutputsBegin);
    prompt_.Markup(kOutputBegin).Text(message.content).Markup(kOutputEnd);
    has_results_ = follows_result_ = true;
    follows_user_ = false;
  }

  void Close() {
    if (follows_result_) {
      prompt_.Markup(kOutputsEnd);  // the model continues its own turn
      return;
    }
    if (!conversation_.options.add_generation_prompt || ContinuesLastMessage(conversation_)) return;
    if (!habits_.marks_turn_with_user || !follows_user_) prompt_.Markup(kAssistant);
    prompt_.Markup(habits_.opening);
  }

  const Conversation& conversation_;
  const Habits habits_;
  PromptBuilder prompt_;
  bool has_results_ = false;     // since the last calls
  bool follows_result_ = false;  // the last message was a result
  bool follows_user_ = false;
};

}  // namespace

Result<Prompt> RenderV25(const Conversation& conversation) {
  return FencedRenderer(conversation, {.keeps_last_system_only = true}).Render();
}

Result<Prompt> RenderV30324(const Conversation& conversation) {
  return FencedRenderer(conversation, {.marks_turn_with_user = true}).Render();
}

Result<Prompt> RenderR1(const Conversation& conversation) {
  return FencedRenderer(
             conversation,
             {.drops_old_reasoning = true, .has_reasoning = true, .opening = "<think>\n"})
      .Render();
}

Result<Prompt> RenderR10528(const Conversation& conversation) {
  return FencedRenderer(
             conversation,
             {.marks_turn_with_user = true, .drops_old_reasoning = true, .has_reasoning = true})
      .Render();
}

}  // namespace hadal
