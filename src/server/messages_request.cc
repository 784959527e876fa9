#include "server/messages_request.h"

#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/quote.h"
#include "server/field_reader.h"
#include "server/sampling_fields.h"
#include "server/tool_choice.h"
#include "server/tool_results.h"
#include "text/chat_template.h"
#include "text/python_json.h"

namespace hadal {
namespace {

// A string, or blocks of text that are joined.
Result<std::string> ReadText(const Json& value, const std::string& path) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return FieldMismatch(path, "a string or a list of text blocks", &value);
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string block_path = fmt::format("{}[{}]", path, i);
    if (!value[i].is_object()) return FieldMismatch(block_path, "an object", &value[i]);
    const FieldReader block(value[i], block_path);
    if (block.Find("type") == nullptr || *block.Find("type") != "text")
      return block.Mismatch("type", "\"text\"");
    if (block.Find("text") == nullptr) return block.Mismatch("text", "a string");
    std::string piece;
    RETURN_IF_ERROR(block.Text("text", &piece));
    text += piece;
  }
  return text;
}

Status RequireText(const FieldReader& fields, std::string_view key, std::string* out) {
  RETURN_IF_ERROR(fields.Text(key, out));
  return out->empty() ? fields.Mismatch(key, "a string that is not empty") : Status::Ok();
}

// Turns of one request, block by block, into messages: results of tools become messages of their
// own before what the user says beside them.
class TurnReader {
 public:
  explicit TurnReader(std::vector<ChatMessage>* messages) : messages_(messages) {}

  Status Add(const Json& value, const std::string& path) {
    if (!value.is_object()) return FieldMismatch(path, "an object", &value);
    const FieldReader fields(value, path);
    const Json* role = fields.Find("role");
    if (role == nullptr || (*role != "user" && *role != "assistant"))
      return fields.Mismatch("role", "user or assistant");
    const Json* content = fields.Find("content");
    if (content == nullptr) return fields.Mismatch("content", "a string or a list of blocks");
    turn_ = {};
    turn_.role = role->get<std::string>();
    has_text_ = false;
    if (content->is_array()) {
      for (size_t i = 0; i < content->size(); ++i)
        RETURN_IF_ERROR(AddBlock((*content)[i], fmt::format("{}.content[{}]", path, i)));
    } else {
      ASSIGN_OR_RETURN(turn_.content, ReadText(*content, path + ".content"));
      has_text_ = true;
    }
    // A turn of results alone needs no message of the user.
    const bool is_results = turn_.role == "user" && !has_text_ && !messages_->empty() &&
                            messages_->back().role == "tool";
    if (!is_results) messages_->push_back(std::move(turn_));
    return Status::Ok();
  }

 private:
  Status AddBlock(const Json& value, const std::string& path) {
    if (!value.is_object()) return FieldMismatch(path, "an object", &value);
    const FieldReader block(value, path);
    const bool is_user = turn_.role == "user";
    std::string type;
    RETURN_IF_ERROR(RequireText(block, "type", &type));
    if (type == "text") {
      if (block.Find("text") == nullptr) return block.Mismatch("text", "a string");
      std::string text;
      RETURN_IF_ERROR(block.Text("text", &text));
      turn_.content += text;
      has_text_ = true;
      return Status::Ok();
    }
    if (type == "tool_result" && is_user) return AddResult(block);
    if (type == "tool_use" && !is_user) return AddCall(block);
    if (type == "thinking" && !is_user) {
      std::string thinking;
      RETURN_IF_ERROR(block.Text("thinking", &thinking));
      turn_.reasoning_content += thinking;
      return Status::Ok();
    }
    if (type == "redacted_thinking" && !is_user)
      return Status::InvalidArgument(path + ": this server hides no thinking, so it knows none");
    return block.Mismatch("type", is_user ? "text or tool_result" : "text, thinking or tool_use");
  }

  Status AddCall(const FieldReader& block) {
    ToolCall& call = turn_.tool_calls.emplace_back();
    RETURN_IF_ERROR(RequireText(block, "id", &call.id));
    RETURN_IF_ERROR(RequireText(block, "name", &call.name));
    ASSIGN_OR_RETURN(const Json* input, block.Object("input"));
    call.arguments = input == nullptr ? "{}" : DumpPythonJson(*input);
    return Status::Ok();
  }

  Status AddResult(const FieldReader& block) {
    ChatMessage& result = messages_->emplace_back();
    result.role = "tool";
    RETURN_IF_ERROR(RequireText(block, "tool_use_id", &result.tool_call_id));
    bool is_error = false;
    RETURN_IF_ERROR(block.Flag("is_error", &is_error));
    if (const Json* content = block.Find("content")) {
      ASSIGN_OR_RETURN(result.content, ReadText(*content, block.PathOf("content")));
    }
    if (is_error) result.content = "Error: " + result.content;
    return Status::Ok();
  }

  std::vector<ChatMessage>* const messages_;
  ChatMessage turn_;
  bool has_text_ = false;
};

Status ReadMessages(const FieldReader& fields, Conversation* conversation) {
  if (const Json* system = fields.Find("system")) {
    ChatMessage& message = conversation->messages.emplace_back();
    message.role = "system";
    ASSIGN_OR_RETURN(message.content, ReadText(*system, "system"));
  }
  ASSIGN_OR_RETURN(const Json* messages, fields.List("messages"));
  if (messages == nullptr || messages->empty())
    return fields.Mismatch("messages", "a list of at least one message");
  TurnReader reader(&conversation->messages);
  for (size_t i = 0; i < messages->size(); ++i)
    RETURN_IF_ERROR(reader.Add((*messages)[i], fmt::format("messages[{}]", i)));
  RETURN_IF_ERROR(OrderToolResults("tool_use_id", &conversation->messages));
  // An answer that was begun is continued.
  ChatMessage& last = conversation->messages.back();
  last.is_prefix = last.role == "assistant" && last.tool_calls.empty();
  return Status::Ok();
}

// In the form of the layouts, which is OpenAI's.
Status ReadMessagesTools(const FieldReader& fields, std::vector<Json>* tools) {
  ASSIGN_OR_RETURN(const Json* list, fields.List("tools"));
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    if (!(*list)[i].is_object()) return FieldMismatch(path, "an object", &(*list)[i]);
    const FieldReader tool((*list)[i], path);
    RETURN_IF_ERROR(tool.Only("type", {"custom"}));
    RETURN_IF_ERROR(tool.Only("strict", {false}));
    RETURN_IF_ERROR(tool.Only("defer_loading", {false}));
    Json function = Json::object();
    std::string name, description;
    RETURN_IF_ERROR(RequireText(tool, "name", &name));
    RETURN_IF_ERROR(tool.Text("description", &description));
    function["name"] = name;
    if (tool.Find("description") != nullptr) function["description"] = description;
    ASSIGN_OR_RETURN(const Json* schema, tool.Object("input_schema"));
    if (schema == nullptr) return tool.Mismatch("input_schema", "an object");
    function["parameters"] = *schema;
    tools->push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return Status::Ok();
}

Result<ToolChoice> ReadMessagesToolChoice(const FieldReader& fields) {
  ToolChoice choice;
  ASSIGN_OR_RETURN(const Json* value, fields.Object("tool_choice"));
  if (value == nullptr) return choice;
  const FieldReader inner(*value, "tool_choice");
  std::string type;
  RETURN_IF_ERROR(RequireText(inner, "type", &type));
  if (type == "any") {
    choice.mode = ToolChoice::Mode::kRequired;
  } else if (type == "none") {
    choice.mode = ToolChoice::Mode::kNone;
  } else if (type == "tool") {
    choice.mode = ToolChoice::Mode::kNamed;
    RETURN_IF_ERROR(RequireText(inner, "name", &choice.name));
  } else if (type != "auto") {
    return inner.Mismatch("type", "auto, any, tool or none");
  }
  bool allows_one = false;
  RETURN_IF_ERROR(inner.Flag("disable_parallel_tool_use", &allows_one));
  choice.allows_many = !allows_one;
  return choice;
}

Result<ThinkingWish> ReadThinking(const FieldReader& fields) {
  ThinkingWish wish;
  ASSIGN_OR_RETURN(const Json* thinking, fields.Object("thinking"));
  if (thinking != nullptr) {
    const FieldReader inner(*thinking, "thinking");
    RETURN_IF_ERROR(inner.Only("type", {"enabled", "disabled", "adaptive"}));
    if (inner.Find("type") == nullptr) return inner.Mismatch("type", "enabled or disabled");
    RETURN_IF_ERROR(inner.Only("display", {"summarized"}));
    wish = {.is_on = *inner.Find("type") != "disabled", .field = "thinking", .max_tokens = -1};
    RETURN_IF_ERROR(ReadTokenLimit(inner, "budget_tokens", &wish.max_tokens));
  }
  ASSIGN_OR_RETURN(const Json* output, fields.Object("output_config"));
  if (output == nullptr) return wish;
  const FieldReader inner(*output, "output_config");
  RETURN_IF_ERROR(inner.Refuse("format", "answers are not held to a schema"));
  ThinkingWish effort;
  RETURN_IF_ERROR(ReadEffort(inner, "effort", &effort));
  if (wish.max_tokens < 0) wish.max_tokens = effort.max_tokens;
  return wish;
}

// Old thinking is dropped, or kept, as the model's layout does it; nothing else is cut.
Status CheckContextManagement(const FieldReader& fields) {
  ASSIGN_OR_RETURN(const Json* management, fields.Object("context_management"));
  if (management == nullptr) return Status::Ok();
  ASSIGN_OR_RETURN(const Json* edits, FieldReader(*management, "context_management").List("edits"));
  for (size_t i = 0; edits != nullptr && i < edits->size(); ++i) {
    const std::string path = fmt::format("context_management.edits[{}]", i);
    if (!(*edits)[i].is_object()) return FieldMismatch(path, "an object", &(*edits)[i]);
    RETURN_IF_ERROR(FieldReader((*edits)[i], path).Only("type", {"clear_thinking_20251015"}));
  }
  return Status::Ok();
}

Status RefuseInMessages(const FieldReader& fields) {
  RETURN_IF_ERROR(fields.Only("service_tier", {"auto", "standard_only"}));
  RETURN_IF_ERROR(fields.Refuse("container", "this server has none"));
  RETURN_IF_ERROR(fields.Refuse("mcp_servers", "this server calls no other servers"));
  RETURN_IF_ERROR(CheckContextManagement(fields));
  RETURN_IF_ERROR(fields.Refuse("output_format", "answers are not held to a schema"));
  return fields.Only("inference_geo", {"global", "not_available"});
}

// What both routes read.
Status ReadConversation(const FieldReader& fields, const ApiModel& model,
                        GenerationRequest* request) {
  Conversation conversation;
  RETURN_IF_ERROR(RefuseInMessages(fields));
  RETURN_IF_ERROR(ReadMessages(fields, &conversation));
  RETURN_IF_ERROR(ReadMessagesTools(fields, &conversation.tools));
  ASSIGN_OR_RETURN(const ThinkingWish thinking, ReadThinking(fields));
  RETURN_IF_ERROR(ApplyThinking(thinking, model, &conversation.options, request));
  ASSIGN_OR_RETURN(const ToolChoice choice, ReadMessagesToolChoice(fields));
  RETURN_IF_ERROR(ApplyToolChoice(choice, model, &conversation, request));
  request->input = std::move(conversation);
  return Status::Ok();
}

}  // namespace

Result<ApiCall> ParseMessagesRequest(const Json& body, const ApiModel& model) {
  const FieldReader fields(body);
  ApiCall call;
  GenerationRequest request;
  request.sampling = model.default_sampling;
  RETURN_IF_ERROR(ReadModelName(fields, model, &call.model));
  RETURN_IF_ERROR(fields.Flag("stream", &call.is_streamed));
  if (fields.Find("max_tokens") == nullptr) return fields.Mismatch("max_tokens", "a whole number");
  RETURN_IF_ERROR(ReadTokenLimit(fields, "max_tokens", &request.max_tokens));
  RETURN_IF_ERROR(fields.Number("temperature", 0, 1, &request.sampling.temperature));
  RETURN_IF_ERROR(fields.Number("top_p", 0, 1, &request.sampling.top_p));
  RETURN_IF_ERROR(fields.Integer("top_k", 0, INT32_MAX, &request.sampling.top_k));
  RETURN_IF_ERROR(ReadStops(fields, "stop_sequences", &request.stop));
  ASSIGN_OR_RETURN(const Json* metadata, fields.Object("metadata"));
  if (metadata != nullptr)
    RETURN_IF_ERROR(FieldReader(*metadata, "metadata").Text("user_id", &call.user));
  RETURN_IF_ERROR(ReadConversation(fields, model, &request));
  call.requests.push_back(std::move(request));
  return call;
}

Result<Json> CountMessagesTokens(const Json& body, const ApiModel& model) {
  if (model.tokenizer == nullptr)
    return Status::Unsupported("this model has no tokenizer.json, so it takes token ids only");
  const FieldReader fields(body);
  ApiCall call;
  GenerationRequest request;
  RETURN_IF_ERROR(ReadModelName(fields, model, &call.model));
  RETURN_IF_ERROR(ReadConversation(fields, model, &request));
  ASSIGN_OR_RETURN(Prompt prompt, RenderChat(model.layout, std::get<Conversation>(request.input)));
  prompt.insert(prompt.end(), request.opening.begin(), request.opening.end());
  return Json{{"input_tokens", model.tokenizer->Encode(prompt).size()}};
}

}  // namespace hadal
