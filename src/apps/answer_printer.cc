#include "apps/answer_printer.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/interrupt.h"

namespace hadal {
namespace {

using Kind = MessageDelta::Kind;

constexpr std::string_view kDim = "\x1b[2m", kPlain = "\x1b[0m";

double Rate(int num_tokens, int64_t us) {
  return num_tokens > 0 && us > 0 ? num_tokens / Seconds(us) : 0.0;
}

}  // namespace

AnswerPrinter::AnswerPrinter(bool has_text)
    : has_text_(has_text),
      is_dim_(isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr) {}

void AnswerPrinter::Write(std::string_view text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  last_ = text.back();
}

void AnswerPrinter::Open(Kind kind) {
  if (is_open_ && kind == kind_ && kind != Kind::kToolCallStart) return;
  if (is_open_ && kind == Kind::kToolCallArguments && kind_ == Kind::kToolCallStart) {
    Write("(");
  } else {
    Close();
    if (kind == Kind::kReasoning) Write(is_dim_ ? kDim : "<think>");
    if (kind == Kind::kToolCallStart) Write("[call] ");
  }
  is_open_ = true;
  kind_ = kind;
}

void AnswerPrinter::Close() {
  if (!is_open_) return;
  is_open_ = false;
  if (kind_ == Kind::kReasoning) Write(is_dim_ ? kPlain : "</think>");
  if (kind_ == Kind::kToolCallStart) Write("()");
  if (kind_ == Kind::kToolCallArguments) Write(")");
  if (last_ != '\n') Write("\n");
}

void AnswerPrinter::PrintPiece(Kind kind, std::string_view text) {
  Open(kind);
  Write(text);
}

void AnswerPrinter::Print(const ResponseChunk& chunk, int choice_idx) {
  for (const ResponsePiece& piece : chunk.pieces)
    if (piece.choice_idx == choice_idx) PrintPiece(piece.kind, chunk.TextOf(piece));
  if (!has_text_) {
    for (const ResponseToken& token : chunk.tokens) {
      if (token.choice_idx == choice_idx)
        PrintPiece(Kind::kContent, fmt::format("{} ", token.token.token.value));
    }
  }
  std::fflush(stdout);
}

void AnswerPrinter::Print(const CollectedChoice& choice) {
  if (!choice.reasoning.empty()) PrintPiece(Kind::kReasoning, choice.reasoning);
  if (!choice.content.empty()) PrintPiece(Kind::kContent, choice.content);
  for (const ToolCall& call : choice.tool_calls) {
    PrintPiece(Kind::kToolCallStart, call.name);
    PrintPiece(Kind::kToolCallArguments, call.arguments);
  }
  for (size_t i = 0; !has_text_ && i < choice.tokens.size(); ++i)
    PrintPiece(Kind::kContent, fmt::format("{} ", choice.tokens[i].token.value));
}

void AnswerPrinter::Finish() {
  Close();
  if (last_ != '\n') Write("\n");
  std::fflush(stdout);
}

bool FollowAnswer(Engine* engine, ResponseStream* stream, AnswerPrinter* printer,
                  ResponseCollector* collector) {
  constexpr std::chrono::milliseconds kLookForInterrupt(50);
  InterruptGuard interrupts;
  bool was_interrupted = false;
  ResponseChunk chunk;
  while (true) {
    const ResponseStream::ReadOutcome outcome = stream->NextWithin(kLookForInterrupt, &chunk);
    if (outcome == ResponseStream::ReadOutcome::kEnd) break;
    if (interrupts.TakeInterrupt() && !was_interrupted) {
      was_interrupted = true;
      engine->Cancel(*stream);
    }
    if (outcome == ResponseStream::ReadOutcome::kTimeout) continue;
    collector->Add(chunk);
    if (printer != nullptr) printer->Print(chunk, 0);
  }
  if (printer != nullptr) printer->Finish();
  return was_interrupted;
}

double PrefillTokensPerSecond(const ResponseEnd& end) {
  return Rate(end.usage.prompt_tokens - end.usage.cached_tokens, end.timings.prefill_us);
}

double DecodeTokensPerSecond(const ResponseEnd& end) {
  return Rate(end.usage.completion_tokens - 1, end.timings.decode_us);
}

std::string DescribeSpeed(const ResponseEnd& end) {
  return fmt::format(
      "{} prompt tokens ({} cached) in {:.2f} s, {:.0f} tokens/s; {} tokens in {:.2f} s, "
      "{:.1f} tokens/s",
      end.usage.prompt_tokens, end.usage.cached_tokens, Seconds(end.timings.prefill_us),
      PrefillTokensPerSecond(end), end.usage.completion_tokens, Seconds(end.timings.decode_us),
      DecodeTokensPerSecond(end));
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kError:
      return "error";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "none";
}

}  // namespace hadal
