#include "server/chat_request.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"
#include "server/field_reader.h"
#include "server/sampling_fields.h"
#include "server/tool_choice.h"
#include "server/tool_results.h"

namespace hadal {
namespace {

constexpr int kMaxTopLogprobs = 20;

// The name under which DeepSeek's own API serves the thinking mode.
constexpr std::string_view kThinkingModelName = "deepseek-reasoner";

Status RefuseInChat(const FieldReader& fields) {
  RETURN_IF_ERROR(fields.Refuse("functions", "use tools instead"));
  RETURN_IF_ERROR(fields.Refuse("function_call", "use tool_choice instead"));
  RETURN_IF_ERROR(fields.Refuse("audio", "this model neither hears nor speaks"));
  RETURN_IF_ERROR(fields.Refuse("prediction", "predicted outputs are not available"));
  RETURN_IF_ERROR(fields.Refuse("web_search_options", "this server does not search the web"));
  RETURN_IF_ERROR(fields.Only("modalities", {Json::array({"text"})}));
  return fields.Only("verbosity", {"medium"});
}

Status CheckMessage(const Json& value, const std::string& path, ChatMessage* message) {
  std::string& role = message->role;
  if (role == "developer") role = "system";  // what OpenAI calls it since its reasoning models
  if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
    return Status::InvalidArgument(
        fmt::format("{}.role: expected system, developer, user, assistant or tool, found {}", path,
                    Quoted(role, 40)));
  }
  const FieldReader fields(value, path);
  // The id of its call already says which tool a result is of.
  if (role != "tool")
    RETURN_IF_ERROR(fields.Refuse("name", "the model's layout has no place for names"));
  RETURN_IF_ERROR(fields.Refuse("audio", "this model neither hears nor speaks"));
  RETURN_IF_ERROR(fields.Refuse("refusal", "send it as content"));
  RETURN_IF_ERROR(fields.Refuse("function_call", "use tool_calls instead"));
  if (role != "assistant") {
    RETURN_IF_ERROR(fields.Refuse("tool_calls", "only an assistant's message has calls"));
    if (!message->has_content)
      return fields.Mismatch("content", "a string or a list of text parts");
  }
  return Status::Ok();
}

Status CheckTools(const std::vector<Json>& tools) {
  for (size_t i = 0; i < tools.size(); ++i) {
    const FieldReader fields(tools[i], fmt::format("tools[{}]", i));
    RETURN_IF_ERROR(fields.Only("type", {"function"}));
    const FieldReader function(tools[i].at("function"), fmt::format("tools[{}].function", i));
    if (tools[i].at("function").value("name", "").empty())
      return function.Mismatch("name", "a name");
    RETURN_IF_ERROR(function.Object("parameters").status());
    bool is_strict = false;
    RETURN_IF_ERROR(function.Flag("strict", &is_strict));
    if (is_strict) {
      return Status::InvalidArgument(
          fmt::format("tools[{}].function.strict: expected false, found true: arguments are not "
                      "held to their schema in this version",
                      i));
    }
  }
  return Status::Ok();
}

// The form {"type": "allowed_tools", "allowed_tools": {"mode": ..., "tools": [...]}} shortens the
// list.
Status KeepAllowedTools(const Json& value, std::vector<Json>* tools, ToolChoice* choice) {
  const FieldReader outer(value, "tool_choice");
  ASSIGN_OR_RETURN(const Json* inner, outer.Object("allowed_tools"));
  if (inner == nullptr) return outer.Mismatch("allowed_tools", "an object");
  const FieldReader fields(*inner, "tool_choice.allowed_tools");
  RETURN_IF_ERROR(fields.Only("mode", {"auto", "required"}));
  if (inner->value("mode", "auto") == "required") choice->mode = ToolChoice::Mode::kRequired;
  ASSIGN_OR_RETURN(const Json* list, fields.List("tools"));
  if (list == nullptr) return fields.Mismatch("tools", "a list");
  std::vector<Json> kept;
  for (const Json& tool : *tools) {
    const auto is_same = [&tool](const Json& one) {
      return one.is_object() && HasValue(one, "function") && one["function"].is_object() &&
             one["function"].value("name", Json()) == tool["function"]["name"];
    };
    if (std::ranges::any_of(*list, is_same)) kept.push_back(tool);
  }
  *tools = std::move(kept);
  return Status::Ok();
}

Result<ToolChoice> ReadToolChoice(const FieldReader& fields, std::vector<Json>* tools) {
  using Mode = ToolChoice::Mode;
  static constexpr std::string_view kExpected =
      "auto, none, required or {\"type\": \"function\", \"function\": {\"name\": ...}}";
  ToolChoice choice;
  RETURN_IF_ERROR(fields.Flag("parallel_tool_calls", &choice.allows_many));
  const Json* value = fields.Find("tool_choice");
  if (value == nullptr || *value == "auto") return choice;
  if (*value == "none") {
    choice.mode = Mode::kNone;
  } else if (*value == "required") {
    choice.mode = Mode::kRequired;
  } else if (value->is_object() && value->value("type", Json()) == "allowed_tools") {
    RETURN_IF_ERROR(KeepAllowedTools(*value, tools, &choice));
  } else if (value->is_object() && value->value("type", Json()) == "function") {
    choice.mode = Mode::kNamed;
    ASSIGN_OR_RETURN(const Json* function, FieldReader(*value, "tool_choice").Object("function"));
    if (function == nullptr) return fields.Mismatch("tool_choice", kExpected);
    RETURN_IF_ERROR(FieldReader(*function, "tool_choice.function").Text("name", &choice.name));
  } else {
    return fields.Mismatch("tool_choice", kExpected);
  }
  return choice;
}

// Thinking is asked for in four ways; the first that is there counts.
Result<ThinkingWish> ReadThinking(const FieldReader& fields, std::string_view model_name) {
  std::vector<ThinkingWish> wishes(1);
  ASSIGN_OR_RETURN(const Json* thinking, fields.Object("thinking"));
  if (thinking != nullptr) {
    const FieldReader inner(*thinking, "thinking");
    RETURN_IF_ERROR(inner.Only("type", {"enabled", "disabled"}));
    if (inner.Find("type") == nullptr) return inner.Mismatch("type", "enabled or disabled");
    wishes[0] = {.is_on = *inner.Find("type") == "enabled", .field = "thinking", .max_tokens = -1};
    RETURN_IF_ERROR(ReadTokenLimit(inner, "budget_tokens", &wishes[0].max_tokens));
  }
  RETURN_IF_ERROR(ReadEffort(fields, "reasoning_effort", &wishes.emplace_back()));
  ASSIGN_OR_RETURN(const Json* variables, fields.Object("chat_template_kwargs"));
  for (const char* key : {"thinking", "enable_thinking"}) {
    if (variables == nullptr) break;
    const FieldReader inner(*variables, "chat_template_kwargs");
    bool is_on = false;
    RETURN_IF_ERROR(inner.Flag(key, &is_on));
    if (inner.Find(key) != nullptr)
      wishes.push_back({.is_on = is_on, .field = inner.PathOf(key), .max_tokens = -1});
  }
  if (model_name == kThinkingModelName)
    wishes.push_back({.is_on = true, .field = "model", .max_tokens = -1});
  for (const ThinkingWish& wish : wishes)
    if (wish.is_on) return wish;
  return ThinkingWish();
}

Status ReadLogprobs(const FieldReader& fields, ApiCall* call, SamplingParams* sampling) {
  int num_top = 0;
  RETURN_IF_ERROR(fields.Flag("logprobs", &call->wants_logprobs));
  RETURN_IF_ERROR(fields.Integer("top_logprobs", 0, kMaxTopLogprobs, &num_top));
  if (fields.Find("top_logprobs") != nullptr && num_top > 0 && !call->wants_logprobs) {
    return Status::InvalidArgument(
        "top_logprobs: expected it only together with \"logprobs\": true, found it without");
  }
  sampling->num_logprobs = call->wants_logprobs ? num_top : -1;
  return Status::Ok();
}

Status ReadMaxTokens(const FieldReader& fields, int* max_tokens) {
  int newer = -1;
  RETURN_IF_ERROR(ReadTokenLimit(fields, "max_tokens", max_tokens));
  RETURN_IF_ERROR(ReadTokenLimit(fields, "max_completion_tokens", &newer));
  if (newer < 0) return Status::Ok();
  if (*max_tokens >= 0 && *max_tokens != newer) {
    return Status::InvalidArgument(
        fmt::format("max_completion_tokens: expected the same as max_tokens ({}), found {}",
                    *max_tokens, newer));
  }
  *max_tokens = newer;
  return Status::Ok();
}

}  // namespace

Result<Conversation> ParseChatMessages(const Json& body) {
  static constexpr std::string_view kWhat = "request";
  Result<Conversation> parsed = ParseConversation(
      Json{{"messages", body.value("messages", Json())}, {"tools", body.value("tools", Json())}},
      kWhat);
  if (!parsed.ok())  // the field stands first in our errors
    return Status::InvalidArgument(parsed.status().message().substr(kWhat.size() + 2));
  Conversation conversation = std::move(parsed).value();
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    RETURN_IF_ERROR(CheckMessage(body["messages"][i], fmt::format("messages[{}]", i),
                                 &conversation.messages[i]));
  }
  RETURN_IF_ERROR(OrderToolResults("tool_call_id", &conversation.messages));
  RETURN_IF_ERROR(CheckTools(conversation.tools));
  return conversation;
}

Result<ApiCall> ParseChatRequest(const Json& body, const ApiModel& model) {
  if (!body.is_object()) return FieldMismatch("body", "a JSON object", &body);
  const FieldReader fields(body);
  ApiCall call;
  GenerationRequest request;
  RETURN_IF_ERROR(ReadModelName(fields, model, &call.model));
  RETURN_IF_ERROR(RefuseInChat(fields));
  RETURN_IF_ERROR(ReadServiceFields(fields, &call));
  RETURN_IF_ERROR(ReadStreaming(fields, &call));
  RETURN_IF_ERROR(ReadSampling(fields, model, &request));
  RETURN_IF_ERROR(ReadLogprobs(fields, &call, &request.sampling));
  RETURN_IF_ERROR(ReadMaxTokens(fields, &request.max_tokens));
  RETURN_IF_ERROR(ReadAnswerFormat(fields, "response_format", &request));
  ASSIGN_OR_RETURN(Conversation conversation, ParseChatMessages(body));
  ASSIGN_OR_RETURN(const ThinkingWish thinking, ReadThinking(fields, call.model));
  RETURN_IF_ERROR(CheckLastMessage("messages", model, conversation.messages));
  RETURN_IF_ERROR(ApplyThinking(thinking, model, &conversation.options, &request));
  ASSIGN_OR_RETURN(const ToolChoice choice, ReadToolChoice(fields, &conversation.tools));
  RETURN_IF_ERROR(ApplyToolChoice(choice, model, &conversation, &request));
  request.input = std::move(conversation);
  call.requests.push_back(std::move(request));
  return call;
}

}  // namespace hadal
