#include "text/chat_message.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "text/python_json.h"

namespace hadal {
namespace {

// "an object", "text", ...: what a value is, for a message.
std::string KindOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return value.empty() ? "an empty list" : "a list";
    case Json::value_t::string:
      return fmt::format("the text {}", Quoted(value.get<std::string>(), 40));
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return "a number";
  }
}

Status Mismatch(std::string_view path, std::string_view expected, const Json* found) {
  return Status::InvalidArgument(fmt::format("{}: expected {}, found {}", path, expected,
                                             found == nullptr ? "nothing" : KindOf(*found)));
}

// The member, or null when it is absent or null.
const Json* Member(const Json& object, std::string_view key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

Result<std::string> RequiredString(const Json& object, std::string_view key,
                                   std::string_view path) {
  const Json* value = Member(object, key);
  if (value == nullptr || !value->is_string()) {
    return Mismatch(fmt::format("{}.{}", path, key), "a string", value);
  }
  return value->get<std::string>();
}

Result<std::string> OptionalString(const Json& object, std::string_view key,
                                   std::string_view path) {
  if (Member(object, key) == nullptr) return std::string();
  return RequiredString(object, key, path);
}

Result<bool> OptionalBool(const Json& object, std::string_view key, bool absent,
                          std::string_view path) {
  const Json* value = Member(object, key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) {
    return Mismatch(fmt::format("{}.{}", path, key), "true or false", value);
  }
  return value->get<bool>();
}

// Text parts, {"type": "text", "text": ...}, joined in order.
Result<std::string> JoinParts(const Json& parts, std::string_view path) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part_path = fmt::format("{}[{}]", path, i);
    const Json& part = parts[i];
    if (!part.is_object()) return Mismatch(part_path, "an object", &part);
    const Json* type = Member(part, "type");
    if (type != nullptr && *type != "text") {
      return Mismatch(part_path + ".type", "\"text\"", type);
    }
    ASSIGN_OR_RETURN(const std::string piece, RequiredString(part, "text", part_path));
    text += piece;
  }
  return text;
}

// As in a request, {"function": {"name": ..., "arguments": "..."}}, or the inner object alone.
Result<ToolCall> ParseToolCall(const Json& value, const std::string& path) {
  if (!value.is_object()) return Mismatch(path, "an object", &value);
  ToolCall call;
  ASSIGN_OR_RETURN(call.id, OptionalString(value, "id", path));
  const Json* function = Member(value, "function");
  const std::string function_path = function == nullptr ? path : path + ".function";
  if (function == nullptr) function = &value;
  if (!function->is_object()) return Mismatch(function_path, "an object", function);
  ASSIGN_OR_RETURN(call.name, RequiredString(*function, "name", function_path));
  const Json* arguments = Member(*function, "arguments");
  if (arguments == nullptr) {
    call.arguments = "{}";
  } else if (arguments->is_string()) {
    call.arguments = arguments->get<std::string>();
  } else if (arguments->is_object()) {
    call.arguments = DumpPythonJson(*arguments);
  } else {
    return Mismatch(function_path + ".arguments", "JSON text", arguments);
  }
  return call;
}

Status ParseContent(const Json& value, const std::string& path, ChatMessage* message) {
  const Json* content = Member(value, "content");
  message->has_content = content != nullptr;
  if (content == nullptr) return Status::Ok();
  if (content->is_string()) {
    message->content = content->get<std::string>();
    return Status::Ok();
  }
  if (!content->is_array()) {
    return Mismatch(path + ".content", "a string, null or a list of text parts", content);
  }
  ASSIGN_OR_RETURN(message->content, JoinParts(*content, path + ".content"));
  return Status::Ok();
}

Result<ChatMessage> ParseMessage(const Json& value, const std::string& path) {
  if (!value.is_object()) return Mismatch(path, "an object", &value);
  ChatMessage message;
  ASSIGN_OR_RETURN(message.role, RequiredString(value, "role", path));
  RETURN_IF_ERROR(ParseContent(value, path, &message));
  // Two names for the same are in use.
  const char* reasoning_key =
      value.contains("reasoning_content") ? "reasoning_content" : "reasoning";
  ASSIGN_OR_RETURN(message.reasoning_content, OptionalString(value, reasoning_key, path));
  ASSIGN_OR_RETURN(message.tool_call_id, OptionalString(value, "tool_call_id", path));
  ASSIGN_OR_RETURN(message.is_prefix, OptionalBool(value, "prefix", false, path));
  if (const Json* calls = Member(value, "tool_calls")) {
    if (!calls->is_array()) return Mismatch(path + ".tool_calls", "a list", calls);
    for (size_t i = 0; i < calls->size(); ++i) {
      ASSIGN_OR_RETURN(ToolCall call,
                       ParseToolCall((*calls)[i], fmt::format("{}.tool_calls[{}]", path, i)));
      message.tool_calls.push_back(std::move(call));
    }
  }
  return message;
}

Status CheckPrefix(const std::vector<ChatMessage>& messages, std::string_view what) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (!message.is_prefix) continue;
    if (i + 1 == messages.size() && message.role == "assistant" && message.tool_calls.empty()) {
      continue;
    }
    return Status::InvalidArgument(
        fmt::format("{}: messages[{}].prefix: expected it only on a last assistant message without "
                    "tool calls, found it on message {} of {} with role {}",
                    what, i, i + 1, messages.size(), Quoted(message.role, 40)));
  }
  return Status::Ok();
}

Status ParseTools(const Json& tools, std::string_view what, std::vector<Json>* out) {
  const std::string path = fmt::format("{}: tools", what);
  if (!tools.is_array()) return Mismatch(path, "a list", &tools);
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string tool_path = fmt::format("{}[{}]", path, i);
    if (!tools[i].is_object()) return Mismatch(tool_path, "an object", &tools[i]);
    const Json* function = Member(tools[i], "function");
    if (function == nullptr || !function->is_object()) {
      return Mismatch(tool_path + ".function", "an object", function);
    }
    RETURN_IF_ERROR(RequiredString(*function, "name", tool_path + ".function").status());
    RETURN_IF_ERROR(OptionalString(*function, "description", tool_path + ".function").status());
    out->push_back(tools[i]);
  }
  return Status::Ok();
}

Status ParseOptions(const Json& value, std::string_view what, ChatOptions* options) {
  const std::string path = fmt::format("{}: options", what);
  if (!value.is_object()) return Mismatch(path, "an object", &value);
  // Where options are written down, what they leave out is what a chat template takes it to be.
  ASSIGN_OR_RETURN(options->add_generation_prompt,
                   OptionalBool(value, "add_generation_prompt", false, path));
  ASSIGN_OR_RETURN(options->thinking, OptionalBool(value, "thinking", false, path));
  if (const Json* schema = Member(value, "response_schema")) options->response_schema = *schema;
  return Status::Ok();
}

}  // namespace

Result<Conversation> ParseConversation(const Json& value, std::string_view what) {
  if (!value.is_object()) return Mismatch(what, "an object", &value);
  Conversation conversation;
  const Json* messages = Member(value, "messages");
  const std::string path = fmt::format("{}: messages", what);
  if (messages == nullptr || !messages->is_array() || messages->empty()) {
    return Mismatch(path, "a list of at least one message", messages);
  }
  for (size_t i = 0; i < messages->size(); ++i) {
    ASSIGN_OR_RETURN(ChatMessage message,
                     ParseMessage((*messages)[i], fmt::format("{}[{}]", path, i)));
    conversation.messages.push_back(std::move(message));
  }
  RETURN_IF_ERROR(CheckPrefix(conversation.messages, what));
  if (const Json* tools = Member(value, "tools")) {
    RETURN_IF_ERROR(ParseTools(*tools, what, &conversation.tools));
  }
  if (const Json* options = Member(value, "options")) {
    RETURN_IF_ERROR(ParseOptions(*options, what, &conversation.options));
  }
  return conversation;
}

}  // namespace hadal
