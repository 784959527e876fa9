// DeepSeek-V3.1, V3.1-Terminus and V3.2-Exp. Specification, 9.6 and 9.7. The list of tools is that
// of the model card: the published template does not write one.
#include "text/chat_renderers.h"
#include "text/markers.h"
#include "text/prompt_builder.h"
#include "text/python_json.h"

namespace hadal {
namespace {

using namespace markers;

void AddToolsBlock(const std::vector<Json>& tools, PromptBuilder* prompt) {
  prompt->Markup("\n\n## Tools\nYou have access to the following tools:\n\n");
  for (const Json& tool : tools) {
    const Json& function = tool.at("function");
    prompt->Markup("### ").Text(function.value("name", ""));
    prompt->Markup("\nDescription: ");
    if (HasValue(function, "description")) prompt->Text(function.value("description", ""));
    prompt->Markup("\n\nParameters: ");
    prompt->Text(HasValue(function, "parameters") ? DumpPythonJson(function.at("parameters"))
                                                  : "{}");
    prompt->Markup("\n\n");
  }
  prompt->Markup("IMPORTANT: ALWAYS adhere to this exact format for tool use:\n");
  prompt->Markup(kCallsBegin).Markup(kCallBegin).Markup("tool_call_name").Markup(kSeparator);
  prompt->Markup("tool_call_arguments").Markup(kCallEnd).Markup("{additional_tool_calls}");
  prompt->Markup(kCallsEnd).Markup("\n\nWhere:\n");
  prompt->Markup(
      "- `tool_call_name` must be an exact match to one of the available tools\n"
      "- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters "
      "Schema\n"
      "- For multiple tool calls, chain them directly without separators or spaces\n");
}

class V31Renderer {
 public:
  explicit V31Renderer(const Conversation& conversation) : conversation_(conversation) {}

  Prompt Render() {
    prompt_.Markup(kBegin).Text(JoinedSystemText(conversation_));
    if (!conversation_.tools.empty()) AddToolsBlock(conversation_.tools, &prompt_);
    for (const ChatMessage& message : conversation_.messages) {
      if (message.role == "user") {
        prompt_.Markup(kUser).Text(message.content);
        follows_user_ = true;
        follows_result_ = false;
      } else if (message.role == "assistant") {
        AddAnswer(message);
      } else if (message.role == "tool") {
        prompt_.Markup(kOutputBegin).Text(message.content).Markup(kOutputEnd);
        follows_user_ = false;
        follows_result_ = true;
      }
    }
    if (conversation_.options.add_generation_prompt && follows_user_) {
      prompt_.Markup(kAssistant).Markup(conversation_.options.thinking ? kThink : kEndThink);
    }
    return prompt_.Take();
  }

 private:
  void AddAnswer(const ChatMessage& message) {
    const bool opens_reasoning =
        follows_user_ && message.is_prefix && conversation_.options.thinking;
    if (follows_user_) prompt_.Markup(kAssistant).Markup(opens_reasoning ? kThink : kEndThink);
    if (opens_reasoning && !message.reasoning_content.empty()) {
      prompt_.Text(message.reasoning_content);
      if (!message.content.empty()) prompt_.Markup(kEndThink);
    }
    std::string_view content = message.content;
    if (message.tool_calls.empty()) {
      // Old reasoning is not sent back; after a result there is none.
      const size_t close = content.find(kEndThink);
      if (!follows_result_ && close != std::string_view::npos) {
        content.remove_prefix(close + kEndThink.size());
      }
      prompt_.Text(content);
    } else {
      prompt_.Text(content).Markup(kCallsBegin);
      for (const ToolCall& call : message.tool_calls) {
        prompt_.Markup(kCallBegin).Text(call.name).Markup(kSeparator);
        prompt_.Text(call.arguments).Markup(kCallEnd);
      }
      prompt_.Markup(kCallsEnd);
    }
    if (!message.is_prefix) prompt_.Markup(kEnd);
    follows_user_ = follows_result_ = false;
  }

  const Conversation& conversation_;
  PromptBuilder prompt_;
  bool follows_user_ = false;
  bool follows_result_ = false;
};

}  // namespace

Result<Prompt> RenderV31(const Conversation& conversation) {
  return V31Renderer(conversation).Render();
}

}  // namespace hadal
