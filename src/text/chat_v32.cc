// DeepSeek-V3.2 (not -Exp): what its own encoder writes; calls are tags, arguments one parameter
// each. Specification, 9.6 and 9.7.
#include <algorithm>

#include <fmt/format.h>

#include "base/quote.h"
#include "text/chat_renderers.h"
#include "text/markers.h"
#include "text/prompt_builder.h"
#include "text/python_json.h"

namespace hadal {
namespace {

using namespace markers;

// Wire format: every byte counts. The schemas of the functions follow, one a line, and
// kToolsBlockEnd.
constexpr std::string_view kToolsBlock =
    "## Tools\n\n"
    "You have access to a set of tools you can use to answer the user's question.\n"
    "You can invoke functions by writing a \"<｜DSML｜function_calls>\" block like the following "
    "as "
    "part of your reply to the user:\n"
    "<｜DSML｜function_calls>\n"
    "<｜DSML｜invoke name=\"$FUNCTION_NAME\">\n"
    "<｜DSML｜parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE"
    "</｜DSML｜parameter>\n"
    "...\n"
    "</｜DSML｜invoke>\n"
    "<｜DSML｜invoke name=\"$FUNCTION_NAME2\">\n"
    "...\n"
    "</｜DSML｜invoke>\n"
    "</｜DSML｜function_calls>\n\n"
    "String and scalar parameters should be specified as is without any escaping or quotes, while "
    "lists and objects should use JSON format. The \"string\" attribute should be set to \"true\" "
    "for string type parameters and \"false\" for other types (numbers, booleans, arrays, "
    "objects).\n\n"
    "If the thinking_mode is enabled, then after function results you should strongly consider "
    "outputting a thinking block. Here is an example:\n\n"
    "<｜DSML｜function_calls>\n...\n</｜DSML｜function_calls>\n\n"
    "<function_results>\n...\n</function_results>\n\n"
    "<think>...thinking about results</think>\n\n"
    "Here are the functions available in JSONSchema format:\n"
    "<functions>\n";
constexpr std::string_view kToolsBlockEnd = "</functions>\n";

bool IsUser(const ChatMessage& message) {
  return message.role == "user" || message.role == "developer";
}

class V32Renderer {
 public:
  explicit V32Renderer(const Conversation& conversation)
      : conversation_(conversation), messages_(conversation.messages) {
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (IsUser(messages_[i])) last_user_ = static_cast<int>(i);
      if (messages_[i].role == "system" && system_ < 0) system_ = static_cast<int>(i);
    }
  }

  Result<Prompt> Render() {
    prompt_.Markup(kBegin);
    if (system_ < 0) AddSystemBlocks();
    for (size_t i = 0; i < messages_.size(); ++i) RETURN_IF_ERROR(AddMessage(i));
    return prompt_.Take();
  }

 private:
  // Whether the reasoning that belongs to message `idx` is shown to the model.
  bool ThinksFrom(int idx) const { return conversation_.options.thinking && idx >= last_user_; }

  Status AddMessage(size_t i) {
    const ChatMessage& message = messages_[i];
    const int idx = static_cast<int>(i);
    if (message.role == "system") {
      prompt_.Text(message.content);
      if (idx == system_) AddSystemBlocks();
    } else if (message.role == "user") {
      prompt_.Markup(kUser).Text(message.content);
      CloseQuestion(idx);
    } else if (message.role == "developer") {
      return AddDeveloper(i);
    } else if (message.role == "assistant") {
      return AddAnswer(i);
    } else if (message.role == "tool") {
      return AddResult(i);
    } else {
      return MessageError(
          i, fmt::format("role: expected system, user, assistant, tool or developer, found {}",
                         Quoted(message.role, 40)));
    }
    return Status::Ok();
  }

  // Tools and the schema of the answer stand with the first system message, or alone at the start.
  void AddSystemBlocks() {
    if (!conversation_.tools.empty()) {
      prompt_.Markup("\n\n").Markup(kToolsBlock);
      for (const Json& tool : conversation_.tools) {
        prompt_.Text(DumpPythonJson(tool.at("function"))).Markup("\n");
      }
      prompt_.Markup(kToolsBlockEnd);
    }
    // The encoder asks whether the schema is true in Python's sense: an empty one is none.
    const std::optional<Json>& schema = conversation_.options.response_schema;
    if (schema.has_value() && !schema->empty() && *schema != false) {
      prompt_.Markup(
          "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to "
          "reply:\n");
      prompt_.Text(DumpPythonJson(*schema));
    }
  }

  // The assistant marker belongs to the question, with the state of thinking after it.
  void CloseQuestion(int idx) {
    prompt_.Markup(kAssistant).Markup(ThinksFrom(idx) ? kThink : kEndThink);
  }

  Status AddDeveloper(size_t i) {
    const int idx = static_cast<int>(i);
    // The encoder drops earlier ones together with the reasoning around them.
    if (conversation_.options.thinking && idx < last_user_) return Status::Ok();
    if (messages_[i].content.empty()) {
      return MessageError(i, "content: expected text in a developer message, found none");
    }
    prompt_.Markup(kUser).Markup("\n\n# The user's message is: ").Text(messages_[i].content);
    CloseQuestion(idx);
    return Status::Ok();
  }

  Status AddAnswer(size_t i) {
    const ChatMessage& message = messages_[i];
    if (conversation_.options.thinking && static_cast<int>(i) > last_user_) {
      prompt_.Text(message.reasoning_content);
      // A prefix without content is continued inside its reasoning.
      if (!message.is_prefix || !message.content.empty()) prompt_.Markup(kEndThink);
    }
    prompt_.Text(message.content);
    if (!message.tool_calls.empty()) RETURN_IF_ERROR(AddCalls(i));
    if (!message.is_prefix) prompt_.Markup(kEnd);
    return Status::Ok();
  }

  Status AddCalls(size_t i) {
    prompt_.Markup("\n\n").Markup(kDsmlCallsBegin);
    for (size_t c = 0; c < messages_[i].tool_calls.size(); ++c) {
      const ToolCall& call = messages_[i].tool_calls[c];
      const std::string path = fmt::format("messages[{}]: tool_calls[{}].arguments", i, c);
      Result<Json> arguments = ParseJsonKeepingIntegers(call.arguments, path);
      if (!arguments.ok()) return Status::InvalidArgument(arguments.status().message());
      if (!arguments->is_object()) {
        return Status::InvalidArgument(
            fmt::format("{}: expected a JSON object, found {}", path, Quoted(call.arguments, 40)));
      }
      prompt_.Markup("\n").Markup(kDsmlInvoke).Text(call.name).Markup("\">\n");
      AddParameters(*arguments);
      prompt_.Markup("\n").Markup(kDsmlInvokeEnd);
    }
    prompt_.Markup("\n").Markup(kDsmlCallsEnd);
    return Status::Ok();
  }

  void AddParameters(const Json& arguments) {
    bool is_first = true;
    for (const auto& [key, value] : arguments.items()) {
      if (!is_first) prompt_.Markup("\n");
      is_first = false;
      prompt_.Markup(kDsmlParameter).Text(key);
      prompt_.Markup(value.is_string() ? "\" string=\"true\">" : "\" string=\"false\">");
      prompt_.Text(value.is_string() ? value.get<std::string>() : DumpPythonJson(value));
      prompt_.Markup(kDsmlParameterEnd);
    }
  }

  Status AddResult(size_t i) {
    size_t caller = i;
    while (caller > 0 && messages_[caller].role == "tool") --caller;
    const bool has_caller = messages_[caller].role == "assistant";
    const size_t num_calls = has_caller ? messages_[caller].tool_calls.size() : 0;
    const size_t rank = i - caller;  // from 1, where there is a caller
    if (!has_caller || rank > num_calls) {
      return MessageError(
          i, fmt::format("expected at most one tool result for each of {} calls before it, found "
                         "result {}",
                         num_calls, std::max<size_t>(rank, 1)));
    }
    if (rank == 1) prompt_.Markup("\n\n<function_results>");
    prompt_.Markup("\n<result>").Text(messages_[i].content).Markup("</result>");
    if (rank == num_calls) {
      prompt_.Markup("\n</function_results>\n\n");
      prompt_.Markup(ThinksFrom(static_cast<int>(i)) ? kThink : kEndThink);
    }
    return Status::Ok();
  }

  const Conversation& conversation_;
  const std::vector<ChatMessage>& messages_;
  PromptBuilder prompt_;
  int last_user_ = -1;
  int system_ = -1;  // the first system message
};

}  // namespace

Result<Prompt> RenderV32(const Conversation& conversation) {
  return V32Renderer(conversation).Render();
}

}  // namespace hadal
