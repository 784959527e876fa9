// The model's text to reasoning, answer and tool calls, while it streams. The joined deltas are the
// same however the text is cut. Specification, 9.6.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_layout.h"
#include "text/chat_message.h"

namespace hadal {

// One step of what the reader sees. Exactly one kind at a time.
struct MessageDelta {
  enum class Kind { kReasoning, kContent, kToolCallStart, kToolCallArguments };
  Kind kind = Kind::kContent;
  int tool_call_idx = 0;  // of the two tool kinds
  std::string
      text;  // the reasoning, the content, the name of the call, or a piece of its arguments
};

struct ParsedMessage {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> tool_calls;
};

class MessageParser {
 public:
  MessageParser(ChatLayout layout, bool starts_in_reasoning);
  ~MessageParser();
  MessageParser(MessageParser&&) noexcept;
  MessageParser& operator=(MessageParser&&) noexcept;

  // Appends the deltas that `text` (valid UTF-8, end token left out) decides. Text that may still
  // turn out to be markup is held back.
  void Push(std::string_view text, std::vector<MessageDelta>* deltas);

  // The end of the text: what was held back becomes what it must be. `was_cut` says that a limit
  // ended it, not the model.
  void Finish(bool was_cut, std::vector<MessageDelta>* deltas);

  // Everything so far.
  const ParsedMessage& message() const;
  bool is_in_reasoning() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hadal
