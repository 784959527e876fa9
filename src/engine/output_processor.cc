#include "engine/output_processor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hadal {

void OutputProcessor::Add(std::unique_ptr<OutputSequence> sequence) {
  const SequenceId id = sequence->id;
  const bool is_new = sequences_.emplace(id, std::move(sequence)).second;
  HADAL_CHECK(is_new);
}

void OutputProcessor::NoteStarted(const BatchPlan& plan, int64_t now_us) {
  for (const SequenceSlice& slice : plan.slices) {
    OutputSequence& sequence = *sequences_.at(slice.id);
    if (sequence.started_us >= 0) continue;
    sequence.started_us = now_us;
    metrics_->Update([&](MetricsSnapshot* values) {
      values->queue_time.Add(Seconds(now_us - sequence.submitted_us));
    });
  }
}

void OutputProcessor::AddMasks(BatchPlan* plan) {
  plan->masks.clear();
  for (SequenceSlice& slice : plan->slices) {
    slice.num_mask_words = 0;  // slices are reused
    const OutputSequence& sequence = *sequences_.at(slice.id);
    if (!slice.wants_tokens || !sequence.constraint) continue;
    const auto drafts =
        std::span(plan->tokens)
            .subspan(static_cast<size_t>(slice.token_begin + slice.num_tokens - slice.num_drafts),
                     static_cast<size_t>(slice.num_drafts));
    slice.mask_begin = static_cast<int>(plan->masks.size());
    slice.num_mask_words = sequence.constraint->AppendAllowed(drafts, &plan->masks);
  }
}

const std::vector<SequenceId>& OutputProcessor::Emit(const std::vector<SequenceUpdate>& updates,
                                                     const StepResult& result, int64_t now_us) {
  stopped_.clear();
  now_us_ = now_us;
  for (const SequenceUpdate& update : updates) {
    const auto place = sequences_.find(update.id);
    HADAL_CHECK(place != sequences_.end());
    OutputSequence* const sequence = place->second.get();
    sequence->usage.cached_tokens = update.num_cached_tokens;
    sequence->usage.accepted_prediction_tokens += update.num_accepted_drafts;
    sequence->usage.rejected_prediction_tokens += update.num_rejected_drafts;
    NoteDrafts(update);
    part_.Clear();
    bool met_stop_string = false;
    for (int i = 0; i < update.num_tokens && !met_stop_string; ++i)
      met_stop_string = EmitToken(result.tokens[update.token_begin + i], result, sequence);
    if (update.num_tokens > 0) NoteDelivery(sequence);
    FinishReason finish = met_stop_string ? FinishReason::kStop : update.finish;
    if (finish != FinishReason::kNone) EmitEnd(finish, met_stop_string, update.error, sequence);
    if (part_.tokens.empty() && part_.pieces.empty() && part_.ends.empty()) continue;
    const bool is_in_time = sequence->stream->Write(part_);
    if (!is_in_time && finish == FinishReason::kNone) {
      part_.Clear();
      finish = FinishReason::kError;
      EmitEnd(finish, false,
              Status::Cancelled("the reader of the answer is too slow: too much of it is unread"),
              sequence);
      sequence->stream->Write(part_);
    }
    if (finish == FinishReason::kNone) continue;
    if (update.finish == FinishReason::kNone) stopped_.push_back(update.id);
    sequences_.erase(place);
  }
  return stopped_;
}

void OutputProcessor::NoteDrafts(const SequenceUpdate& update) {
  const int num_drafts = update.num_accepted_drafts + update.num_rejected_drafts;
  if (num_drafts == 0) return;
  metrics_->Update([&](MetricsSnapshot* values) {
    for (int i = 0; i < std::min(num_drafts, kMostDrafts); ++i) {
      ++values->num_drafts_at[static_cast<size_t>(i)];
      if (i < update.num_accepted_drafts) ++values->num_accepted_at[static_cast<size_t>(i)];
    }
  });
}

void OutputProcessor::NoteDelivery(OutputSequence* sequence) {
  const bool is_first = sequence->first_token_us < 0;
  const int64_t since_us = is_first ? sequence->submitted_us : sequence->last_token_us;
  if (is_first) sequence->first_token_us = now_us_;
  sequence->last_token_us = now_us_;
  metrics_->Update([&](MetricsSnapshot* values) {
    (is_first ? values->time_to_first_token : values->inter_token).Add(Seconds(now_us_ - since_us));
  });
}

bool OutputProcessor::EmitToken(const SampledToken& token, const StepResult& result,
                                OutputSequence* sequence) {
  if (!sequence->opening.empty()) EmitText(std::exchange(sequence->opening, {}), sequence);
  if (sequence->constraint) sequence->constraint->Accept(token.token);
  part_.AddToken(sequence->choice_idx, token, result);
  ++sequence->usage.completion_tokens;
  return sequence->decoder && EmitText(sequence->decoder->Push(token.token), sequence);
}

bool OutputProcessor::EmitText(std::string_view text, OutputSequence* sequence) {
  if (!sequence->parser) return EmitContent(text, sequence);
  deltas_.clear();
  sequence->parser->Push(text, &deltas_);
  return EmitDeltas(sequence);
}

bool OutputProcessor::EmitDeltas(OutputSequence* sequence) {
  for (const MessageDelta& delta : deltas_) {
    if (delta.kind == MessageDelta::Kind::kContent) {
      if (EmitContent(delta.text, sequence)) return true;
      continue;
    }
    // Stop strings act on the answer only, and none goes on behind what is not answer.
    LetGo(sequence);
    if (delta.kind == MessageDelta::Kind::kToolCallStart &&
        sequence->num_tool_calls++ == sequence->max_tool_calls)
      return true;
    part_.AddPiece(sequence->choice_idx, delta.kind, delta.tool_call_idx, delta.text);
  }
  return false;
}

bool OutputProcessor::EmitContent(std::string_view text, OutputSequence* sequence) {
  content_.clear();
  const bool met_stop_string = sequence->stops.Push(text, &content_);
  part_.AddPiece(sequence->choice_idx, MessageDelta::Kind::kContent, 0, content_);
  return met_stop_string;
}

void OutputProcessor::LetGo(OutputSequence* sequence) {
  content_.clear();
  sequence->stops.Flush(&content_);
  part_.AddPiece(sequence->choice_idx, MessageDelta::Kind::kContent, 0, content_);
}

void OutputProcessor::EmitEnd(FinishReason finish, bool met_stop_string, const Status& error,
                              OutputSequence* sequence) {
  if (!met_stop_string && sequence->decoder) {
    if (!sequence->opening.empty()) EmitText(std::exchange(sequence->opening, {}), sequence);
    const bool was_cut = finish != FinishReason::kStop;
    met_stop_string = EmitText(sequence->decoder->Finish(), sequence);
    if (sequence->parser && !met_stop_string) {
      deltas_.clear();
      sequence->parser->Finish(was_cut, &deltas_);
      met_stop_string = EmitDeltas(sequence);
    }
    if (!met_stop_string) LetGo(sequence);
    if (met_stop_string && finish == FinishReason::kLength) finish = FinishReason::kStop;
  }
  if (finish == FinishReason::kStop && sequence->num_tool_calls > 0 &&
      sequence->max_tool_calls != 0)
    finish = FinishReason::kToolCalls;
  ResponseEnd end{.choice_idx = sequence->choice_idx,
                  .finish = finish,
                  .error = error.message(),
                  .error_code = error.code(),
                  .stop_string = sequence->stops.met(),
                  .usage = sequence->usage,
                  .timings = {}};
  if (sequence->first_token_us >= 0) {
    end.timings = {.queue_us = sequence->started_us - sequence->submitted_us,
                   .prefill_us = sequence->first_token_us - sequence->started_us,
                   .decode_us = sequence->last_token_us - sequence->first_token_us};
  }
  Count(end, *sequence);
  if (trace_ != nullptr) Trace(end, *sequence);
  part_.ends.push_back(std::move(end));
}

void OutputProcessor::Count(const ResponseEnd& end, const OutputSequence& sequence) {
  metrics_->Update([&](MetricsSnapshot* values) {
    values->num_stopped +=
        end.finish == FinishReason::kStop || end.finish == FinishReason::kToolCalls;
    values->num_cut += end.finish == FinishReason::kLength;
    values->num_failed += end.finish == FinishReason::kError;
    values->num_cancelled += end.finish == FinishReason::kCancelled;
    values->num_prompt_tokens += end.usage.prompt_tokens;
    values->num_cached_tokens += end.usage.cached_tokens;
    values->num_generated_tokens += end.usage.completion_tokens;
    values->num_accepted_drafts += end.usage.accepted_prediction_tokens;
    values->num_rejected_drafts += end.usage.rejected_prediction_tokens;
    values->num_expired += end.error_code == StatusCode::kDeadlineExceeded;
    values->prompt_tokens.Add(end.usage.prompt_tokens);
    values->output_tokens.Add(end.usage.completion_tokens);
    if (end.finish != FinishReason::kCancelled)
      values->end_to_end.Add(Seconds(now_us_ - sequence.submitted_us));
  });
}

void OutputProcessor::Trace(const ResponseEnd& end, const OutputSequence& sequence) {
  const int64_t id = sequence.id.value;
  const int64_t started_us = sequence.started_us >= 0 ? sequence.started_us : now_us_;
  const int64_t first_us = sequence.first_token_us >= 0 ? sequence.first_token_us : now_us_;
  trace_->AnswerSpan("answer", id, sequence.submitted_us, now_us_,
                     {{"prompt tokens", end.usage.prompt_tokens},
                      {"cached tokens", end.usage.cached_tokens},
                      {"generated tokens", end.usage.completion_tokens}});
  trace_->AnswerSpan("queue", id, sequence.submitted_us, started_us);
  if (sequence.started_us >= 0) trace_->AnswerSpan("prompt", id, started_us, first_us);
  if (sequence.first_token_us >= 0) trace_->AnswerSpan("decode", id, first_us, now_us_);
}

void OutputProcessor::End(SequenceId id, FinishReason finish, const Status& error, int64_t now_us) {
  now_us_ = now_us;
  const auto place = sequences_.find(id);
  if (place == sequences_.end()) return;
  part_.Clear();
  EmitEnd(finish, false, error, place->second.get());
  place->second->stream->Write(part_);
  sequences_.erase(place);
}

void OutputProcessor::EndAll(FinishReason finish, int64_t now_us) {
  while (!sequences_.empty()) End(sequences_.begin()->first, finish, Status::Ok(), now_us);
}

}  // namespace hadal
