// Tokens to what the reader sees: text, reasoning and tool calls apart, stop strings, the reason of
// the end. Engine thread only; what it needs per sequence was made by the thread that submitted it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "batch/batch_plan.h"
#include "batch/step_result.h"
#include "engine/answer_constraint.h"
#include "engine/metrics.h"
#include "engine/response_stream.h"
#include "engine/stop_matcher.h"
#include "engine/trace_writer.h"
#include "sched/scheduler.h"
#include "text/message_parser.h"
#include "text/stream_decoder.h"

namespace hadal {

// The output of one sequence on its way.
struct OutputSequence {
  SequenceId id;
  int choice_idx = 0;
  std::shared_ptr<ResponseStream> stream;
  std::optional<StreamDecoder> decoder;          // none without a tokenizer
  std::optional<MessageParser> parser;           // none: all text is the answer
  std::unique_ptr<AnswerConstraint> constraint;  // null: any token may come
  std::string opening;                           // text before that of the first token
  int max_tool_calls = -1, num_tool_calls = 0;
  StopMatcher stops{{}};
  Usage usage;
  int64_t submitted_us = 0, started_us = -1, first_token_us = -1, last_token_us = -1;
};

class OutputProcessor {
 public:
  // `trace` may be null.
  explicit OutputProcessor(Metrics* metrics, TraceWriter* trace = nullptr)
      : metrics_(metrics), trace_(trace) {}

  void Add(std::unique_ptr<OutputSequence> sequence);

  // Notes who is in a step for the first time.
  void NoteStarted(const BatchPlan& plan, int64_t now_us);

  // Writes into the plan which tokens may come, for the sequences where not all may.
  void AddMasks(BatchPlan* plan);

  // Sequences that have not ended.
  int num_sequences() const { return static_cast<int>(sequences_.size()); }
  bool Has(SequenceId id) const { return sequences_.contains(id); }

  // Passes on what a step produced. Returns the sequences that the scheduler must finish because
  // their text met a stop string or their reader is too slow; the list lives until the next call.
  // An update that ends its sequence is its last one.
  const std::vector<SequenceId>& Emit(const std::vector<SequenceUpdate>& updates,
                                      const StepResult& result, int64_t now_us);

  // Ends a sequence that no step ends: it was cancelled, or never admitted. Nothing happens when
  // it has ended.
  void End(SequenceId id, FinishReason finish, const Status& error, int64_t now_us);
  void EndAll(FinishReason finish, int64_t now_us);

 private:
  // Adds one token's text to part_; true when a stop string is complete.
  bool EmitToken(const SampledToken& token, const StepResult& result, OutputSequence* sequence);
  bool EmitText(std::string_view text, OutputSequence* sequence);
  bool EmitContent(std::string_view text, OutputSequence* sequence);
  bool EmitDeltas(OutputSequence* sequence);
  void LetGo(OutputSequence* sequence);
  // Adds the last text, unless a stop string ended it, and the end.
  void EmitEnd(FinishReason finish, bool met_stop_string, const Status& error,
               OutputSequence* sequence);
  void NoteDrafts(const SequenceUpdate& update);
  void NoteDelivery(OutputSequence* sequence);
  void Count(const ResponseEnd& end, const OutputSequence& sequence);

  void Trace(const ResponseEnd& end, const OutputSequence& sequence);

  Metrics* const metrics_;
  TraceWriter* const trace_;
  std::unordered_map<SequenceId, std::unique_ptr<OutputSequence>> sequences_;
  // Scratch, kept so that a step allocates nothing.
  ResponseChunk part_;
  std::string content_;
  std::vector<MessageDelta> deltas_;
  std::vector<SequenceId> stopped_;
  int64_t now_us_ = 0;  // of the call
};

}  // namespace hadal
