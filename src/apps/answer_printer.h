// Shows an answer to a person while it comes: reasoning apart from the answer, calls of tools
// named.
#pragma once

#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engine/response_collector.h"
#include "engine/response_stream.h"

namespace hadal {

// Writes to standard output. On a terminal reasoning is dim; elsewhere it stands between
// "<think>" and "</think>".
class AnswerPrinter {
 public:
  explicit AnswerPrinter(bool has_text);

  // The pieces of one choice; ids where the model has no text.
  void Print(const ResponseChunk& chunk, int choice_idx);
  void Print(const CollectedChoice& choice);
  // Ends the line and what is open.
  void Finish();

 private:
  void PrintPiece(MessageDelta::Kind kind, std::string_view text);
  void Open(MessageDelta::Kind kind);
  void Close();
  void Write(std::string_view text);

  const bool has_text_, is_dim_;
  bool is_open_ = false;
  MessageDelta::Kind kind_ = MessageDelta::Kind::kContent;  // of what is open
  char last_ = '\n';
};

// Reads `stream` to its end; ctrl-C cancels it. `printer` may be null. True when it was cancelled.
// REQUIRES: HandleInterrupts() was called.
bool FollowAnswer(Engine* engine, ResponseStream* stream, AnswerPrinter* printer,
                  ResponseCollector* collector);

// "12 prompt tokens (4 cached) in 0.05 s, 240 tokens/s; 20 tokens in 0.31 s, 66 tokens/s".
std::string DescribeSpeed(const ResponseEnd& end);

// Tokens that had to be computed, per second; 0 when nothing can be said.
double PrefillTokensPerSecond(const ResponseEnd& end);
// Of the tokens behind the first one.
double DecodeTokensPerSecond(const ResponseEnd& end);

// "stop", "length", "tool_calls", "error", "cancelled".
std::string_view FinishReasonName(FinishReason reason);

}  // namespace hadal
