#include "server/responses_request.h"

#include <utility>

#include <fmt/format.h>

#include "server/chat_request.h"
#include "server/field_reader.h"
#include "server/sampling_fields.h"
#include "server/tool_choice.h"
#include "server/tool_results.h"

namespace hadal {
namespace {

constexpr int kMaxTopLogprobs = 20;

// A string, or parts of one of two kinds.
Result<std::string> ReadParts(const FieldReader& fields, std::string_view key) {
  const Json* value = fields.Find(key);
  if (value == nullptr) return fields.Mismatch(key, "a string or a list of parts");
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_array()) return fields.Mismatch(key, "a string or a list of parts");
  std::string text;
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", fields.PathOf(key), i);
    if (!(*value)[i].is_object()) return FieldMismatch(path, "an object", &(*value)[i]);
    const FieldReader part((*value)[i], path);
    RETURN_IF_ERROR(
        part.Only("type", {"input_text", "output_text", "text", "reasoning_text", "summary_text"}));
    if (part.Find("type") == nullptr) return part.Mismatch("type", "input_text");
    if (part.Find("text") == nullptr) return part.Mismatch("text", "a string");
    std::string piece;
    RETURN_IF_ERROR(part.Text("text", &piece));
    text += piece;
  }
  return text;
}

// Items to messages. What the model said in one turn comes as several items: its reasoning, its
// text, its calls.
class ItemReader {
 public:
  explicit ItemReader(std::vector<ChatMessage>* messages) : messages_(messages) {}

  Status Add(const Json& value, const std::string& path) {
    if (!value.is_object()) return FieldMismatch(path, "an object", &value);
    const FieldReader item(value, path);
    std::string type = "message";
    RETURN_IF_ERROR(item.Text("type", &type));
    if (type == "message") return AddMessage(item);
    if (type == "function_call") return AddCall(item);
    if (type == "function_call_output") return AddResult(item);
    if (type == "reasoning") return AddReasoning(item);
    return item.Mismatch("type", "message, reasoning, function_call or function_call_output");
  }

 private:
  Status AddMessage(const FieldReader& item) {
    std::string role;
    RETURN_IF_ERROR(item.Text("role", &role));
    if (role == "developer") role = "system";
    if (role != "system" && role != "user" && role != "assistant")
      return item.Mismatch("role", "system, developer, user or assistant");
    ChatMessage& message = role == "assistant" ? Turn() : messages_->emplace_back();
    message.role = role;
    ASSIGN_OR_RETURN(const std::string text, ReadParts(item, "content"));
    message.content += text;
    is_in_turn_ = role == "assistant";
    return Status::Ok();
  }

  Status AddCall(const FieldReader& item) {
    ToolCall& call = Turn().tool_calls.emplace_back();
    RETURN_IF_ERROR(item.Text("call_id", &call.id));
    RETURN_IF_ERROR(item.Text("name", &call.name));
    RETURN_IF_ERROR(item.Text("arguments", &call.arguments));
    if (call.id.empty()) return item.Mismatch("call_id", "a string that is not empty");
    if (call.name.empty()) return item.Mismatch("name", "a string that is not empty");
    if (call.arguments.empty()) call.arguments = "{}";
    return Status::Ok();
  }

  Status AddResult(const FieldReader& item) {
    is_in_turn_ = false;
    ChatMessage& result = messages_->emplace_back();
    result.role = "tool";
    RETURN_IF_ERROR(item.Text("call_id", &result.tool_call_id));
    if (result.tool_call_id.empty()) return item.Mismatch("call_id", "a string that is not empty");
    ASSIGN_OR_RETURN(result.content, ReadParts(item, "output"));
    return Status::Ok();
  }

  Status AddReasoning(const FieldReader& item) {
    if (item.Find("content") == nullptr) return Status::Ok();  // its text was never given out
    ASSIGN_OR_RETURN(const std::string text, ReadParts(item, "content"));
    is_in_turn_ = false;
    Turn().reasoning_content += text;
    return Status::Ok();
  }

  // The assistant's message that the items at hand belong to.
  ChatMessage& Turn() {
    if (!is_in_turn_) messages_->emplace_back().role = "assistant";
    is_in_turn_ = true;
    return messages_->back();
  }

  std::vector<ChatMessage>* const messages_;
  bool is_in_turn_ = false;
};

Status ReadInput(const FieldReader& fields, std::vector<ChatMessage>* messages) {
  std::string instructions;
  RETURN_IF_ERROR(fields.Text("instructions", &instructions));
  const auto add = [messages](const char* role, std::string text) {
    ChatMessage& message = messages->emplace_back();
    message.role = role;
    message.content = std::move(text);
  };
  if (!instructions.empty()) add("system", std::move(instructions));
  const Json* input = fields.Find("input");
  if (input == nullptr || (!input->is_string() && !input->is_array()) || input->empty())
    return fields.Mismatch("input", "a string or a list of at least one item");
  if (input->is_string()) {
    add("user", input->get<std::string>());
    return Status::Ok();
  }
  ItemReader reader(messages);
  for (size_t i = 0; i < input->size(); ++i)
    RETURN_IF_ERROR(reader.Add((*input)[i], fmt::format("input[{}]", i)));
  if (messages->empty()) return fields.Mismatch("input", "at least one message");
  return OrderToolResults("call_id", messages);
}

Status ReadResponsesTools(const FieldReader& fields, std::vector<Json>* tools) {
  ASSIGN_OR_RETURN(const Json* list, fields.List("tools"));
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    if (!(*list)[i].is_object()) return FieldMismatch(path, "an object", &(*list)[i]);
    const FieldReader tool((*list)[i], path);
    RETURN_IF_ERROR(tool.Only("type", {"function"}));
    if (tool.Find("type") == nullptr) return tool.Mismatch("type", "function");
    RETURN_IF_ERROR(tool.Only("strict", {false}));
    std::string name, description;
    RETURN_IF_ERROR(tool.Text("name", &name));
    RETURN_IF_ERROR(tool.Text("description", &description));
    if (name.empty()) return tool.Mismatch("name", "a string that is not empty");
    Json function = {{"name", name}};
    if (tool.Find("description") != nullptr) function["description"] = description;
    ASSIGN_OR_RETURN(const Json* schema, tool.Object("parameters"));
    if (schema != nullptr) function["parameters"] = *schema;
    tools->push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return Status::Ok();
}

Result<ToolChoice> ReadResponsesToolChoice(const FieldReader& fields) {
  using Mode = ToolChoice::Mode;
  ToolChoice choice;
  RETURN_IF_ERROR(fields.Flag("parallel_tool_calls", &choice.allows_many));
  const Json* value = fields.Find("tool_choice");
  if (value == nullptr || *value == "auto") return choice;
  if (*value == "none") {
    choice.mode = Mode::kNone;
  } else if (*value == "required") {
    choice.mode = Mode::kRequired;
  } else if (value->is_object() && value->value("type", Json()) == "function") {
    choice.mode = Mode::kNamed;
    RETURN_IF_ERROR(FieldReader(*value, "tool_choice").Text("name", &choice.name));
  } else {
    return fields.Mismatch("tool_choice",
                           "auto, none, required or {\"type\": \"function\", \"name\": ...}");
  }
  return choice;
}

Result<ThinkingWish> ReadReasoning(const FieldReader& fields) {
  ASSIGN_OR_RETURN(const Json* reasoning, fields.Object("reasoning"));
  ThinkingWish wish;
  if (reasoning != nullptr) {
    const FieldReader inner(*reasoning, "reasoning");
    RETURN_IF_ERROR(ReadEffort(inner, "effort", &wish));
    // The reasoning itself is given, which is more than a summary.
    RETURN_IF_ERROR(inner.Only("summary", {"auto", "concise", "detailed"}));
    RETURN_IF_ERROR(inner.Only("generate_summary", {"auto", "concise", "detailed"}));
  }
  return wish;
}

Status ReadTextFormat(const FieldReader& fields, GenerationRequest* request) {
  ASSIGN_OR_RETURN(const Json* text, fields.Object("text"));
  if (text == nullptr) return Status::Ok();
  const FieldReader inner(*text, "text");
  RETURN_IF_ERROR(inner.Only("verbosity", {"medium"}));
  return ReadAnswerFormat(inner, "format", request);
}

Status ReadInclude(const FieldReader& fields, ApiCall* call, GenerationRequest* request) {
  std::vector<std::string> include;
  RETURN_IF_ERROR(fields.Texts("include", &include));
  for (const std::string& one : include) {
    if (one == "message.output_text.logprobs") {
      call->wants_logprobs = true;
    } else if (one != "reasoning.encrypted_content") {  // reasoning is given in clear
      return fields.Mismatch("include",
                             "message.output_text.logprobs or reasoning.encrypted_content");
    }
  }
  int num_top = 0;
  RETURN_IF_ERROR(fields.Integer("top_logprobs", 0, kMaxTopLogprobs, &num_top));
  if (num_top > 0 && !call->wants_logprobs) {
    return Status::InvalidArgument(
        "top_logprobs: expected it only where include has message.output_text.logprobs, found it "
        "without");
  }
  request->sampling.num_logprobs = call->wants_logprobs ? num_top : -1;
  return Status::Ok();
}

Status RefuseInResponses(const FieldReader& fields) {
  const char* const stateless =
      "this server keeps no answers, send the whole conversation as input";
  RETURN_IF_ERROR(fields.Refuse("previous_response_id", stateless));
  RETURN_IF_ERROR(fields.Refuse("conversation", stateless));
  RETURN_IF_ERROR(fields.Refuse("prompt", "this server keeps no prompts"));
  RETURN_IF_ERROR(fields.Refuse("max_tool_calls", "this server runs no tools itself"));
  RETURN_IF_ERROR(fields.Only("background", {false}));
  return fields.Only("truncation", {"disabled"});
}

// What a reply repeats of its request.
Json RepeatedFields(const Json& body, const GenerationRequest& request) {
  Json repeated = {{"instructions", body.value("instructions", Json())},
                   {"max_output_tokens", body.value("max_output_tokens", Json())},
                   {"metadata", body.value("metadata", Json::object())},
                   {"parallel_tool_calls", body.value("parallel_tool_calls", Json(true))},
                   {"previous_response_id", nullptr},
                   {"reasoning", body.value("reasoning", Json{{"effort", nullptr}})},
                   {"store", false},
                   {"temperature", request.sampling.temperature},
                   {"text", body.value("text", Json{{"format", {{"type", "text"}}}})},
                   {"tool_choice", body.value("tool_choice", Json("auto"))},
                   {"tools", body.value("tools", Json::array())},
                   {"top_p", request.sampling.top_p},
                   {"truncation", "disabled"}};
  return repeated;
}

}  // namespace

Result<ApiCall> ParseResponsesRequest(const Json& body, const ApiModel& model) {
  const FieldReader fields(body);
  ApiCall call;
  GenerationRequest request;
  Conversation conversation;
  RETURN_IF_ERROR(ReadModelName(fields, model, &call.model));
  RETURN_IF_ERROR(RefuseInResponses(fields));
  RETURN_IF_ERROR(ReadServiceFields(fields, &call));
  RETURN_IF_ERROR(ReadStreaming(fields, &call));
  request.sampling = model.default_sampling;
  RETURN_IF_ERROR(fields.Number("temperature", 0, 2, &request.sampling.temperature));
  RETURN_IF_ERROR(fields.Number("top_p", 0, 1, &request.sampling.top_p));
  RETURN_IF_ERROR(ReadTokenLimit(fields, "max_output_tokens", &request.max_tokens));
  RETURN_IF_ERROR(ReadInclude(fields, &call, &request));
  RETURN_IF_ERROR(ReadTextFormat(fields, &request));
  RETURN_IF_ERROR(ReadInput(fields, &conversation.messages));
  RETURN_IF_ERROR(ReadResponsesTools(fields, &conversation.tools));
  RETURN_IF_ERROR(CheckLastMessage("input", model, conversation.messages));
  ASSIGN_OR_RETURN(const ThinkingWish thinking, ReadReasoning(fields));
  RETURN_IF_ERROR(ApplyThinking(thinking, model, &conversation.options, &request));
  ASSIGN_OR_RETURN(const ToolChoice choice, ReadResponsesToolChoice(fields));
  RETURN_IF_ERROR(ApplyToolChoice(choice, model, &conversation, &request));
  call.repeated = RepeatedFields(body, request);
  request.input = std::move(conversation);
  call.requests.push_back(std::move(request));
  return call;
}

}  // namespace hadal
