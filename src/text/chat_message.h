// A conversation as the APIs carry it, independent of any model version.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace hadal {

struct ToolCall {
  std::string id;  // may be empty
  std::string name;
  std::string arguments;  // JSON text, as the model wrote it or as the client sent it
};

struct ChatMessage {
  std::string role;  // system, user, assistant, tool, developer; others are the template's business
  std::string content;
  bool has_content =
      true;  // false: the key was absent or null (some templates tell the difference)
  std::string reasoning_content;
  std::vector<ToolCall> tool_calls;
  std::string tool_call_id;
  bool is_prefix = false;  // an assistant message to be continued instead of closed
};

struct ChatOptions {
  bool add_generation_prompt = true;
  bool thinking = false;
  std::optional<Json> response_schema;
};

struct Conversation {
  std::vector<ChatMessage> messages;
  std::vector<Json> tools;  // as in a request: {"type": "function", "function": {...}}
  ChatOptions options;
};

// From {"messages": [...], "tools": [...]?, "options": {...}?}; the order of keys in an object does
// not matter. Content may be a string, null, or a list of text parts, which are joined. Integers
// beyond 64 bits in tools survive when the text was read with ParseJsonKeepingIntegers.
// Without "options" the defaults of ChatOptions hold; a key left out of given options is false.
// kInvalidArgument with the path of the field. `what` names the source in errors.
Result<Conversation> ParseConversation(const Json& value, std::string_view what);

}  // namespace hadal
