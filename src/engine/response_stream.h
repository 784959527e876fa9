// What flows from the engine thread to the one reader of a request. The engine never waits for the
// reader: what is not read yet is joined to one chunk, and a reader that falls too far behind loses
// its request. Memory is swapped to and fro, so that a steady stream allocates nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "batch/step_result.h"
#include "sched/request.h"
#include "text/message_parser.h"

namespace hadal {

struct Usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;      // of the prompt, not computed again
  int completion_tokens = 0;  // the stop token is not counted
  int accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
};

struct Timings {
  int64_t queue_us = 0;    // from Submit to the first step
  int64_t prefill_us = 0;  // from there to the first token
  int64_t decode_us = 0;   // from there to the last one
};

// A piece of text of one kind. Adjacent pieces of the same kind may be joined.
struct ResponsePiece {
  int choice_idx = 0;
  MessageDelta::Kind kind = MessageDelta::Kind::kContent;
  int tool_call_idx = 0;
  size_t text_begin = 0, text_size = 0;  // into ResponseChunk::text
};

struct ResponseToken {
  int choice_idx = 0;
  SampledToken token;  // alternatives: into ResponseChunk::top_logprobs
};

struct ResponseEnd {
  int choice_idx = 0;
  FinishReason finish = FinishReason::kNone;
  std::string error;                        // of kError
  StatusCode error_code = StatusCode::kOk;  // of kError: whose fault it was
  std::string stop_string;                  // that ended the answer; empty: none did
  Usage usage;
  Timings timings;
};

// Everything that happened between two reads. Text may lag behind its tokens.
struct ResponseChunk {
  std::string text;
  std::vector<ResponsePiece> pieces;
  std::vector<ResponseToken> tokens;
  std::vector<TokenLogprob> top_logprobs;
  std::vector<ResponseEnd> ends;

  std::string_view TextOf(const ResponsePiece& piece) const {
    return std::string_view(text).substr(piece.text_begin, piece.text_size);
  }
  void Clear();  // keeps the memory
  void AddPiece(int choice_idx, MessageDelta::Kind kind, int tool_call_idx, std::string_view piece);
  void AddToken(int choice_idx, const SampledToken& token, const StepResult& result);
  void Append(const ResponseChunk& part);
};

// What is known of a response before its first token.
struct ResponseHead {
  std::vector<SequenceId> sequences;  // one per choice
  std::vector<TokenId> prompt;
  uint64_t seed = 0;     // of the first choice: asked for, or drawn
  bool has_text = true;  // false: no tokenizer, only ids come
  bool starts_in_reasoning = false;
};

// One reader, one writer (the engine thread); each from its own thread.
class ResponseStream {
 public:
  // A reader may leave `max_unread_bytes` unread.
  ResponseStream(ResponseHead head, int64_t max_unread_bytes);

  const ResponseHead& head() const { return head_; }
  int num_choices() const { return static_cast<int>(head_.sequences.size()); }

  // Waits for news and moves them into `chunk`. False when all choices have ended and everything
  // was read.
  bool Next(ResponseChunk* chunk);

  enum class ReadOutcome { kChunk, kTimeout, kEnd };
  ReadOutcome NextWithin(std::chrono::milliseconds timeout, ResponseChunk* chunk);

  // For a reader that does not wait: `listener` is called when there are news, once until the next
  // read (NextWithin with no time takes what there is). It comes from the engine thread, or from
  // within this call when news are there already, must be quick, and may still come when the reader
  // has gone. REQUIRES: at most once per stream.
  void SetListener(std::function<void()> listener);

  // Engine thread. False when the reader is too far behind; the part is taken in all the same.
  bool Write(const ResponseChunk& part);

 private:
  bool has_news() const {
    return !pending_.tokens.empty() || !pending_.pieces.empty() || !pending_.ends.empty();
  }
  ReadOutcome Take(ResponseChunk* chunk);
  // Whether the listener must be called now; notes that it was. REQUIRES: mutex_ is held.
  bool MustTell();

  const ResponseHead head_;
  const int64_t max_unread_bytes_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  ResponseChunk pending_;  // guarded by mutex_, as is all below
  int num_ended_ = 0;
  std::function<void()> listener_;  // never changes once it is set
  bool was_told_ = false;           // of news that were not read yet
};

}  // namespace hadal
