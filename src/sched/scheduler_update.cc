// The second half of the scheduler: what becomes of a plan, and how sequences end.
#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "sched/scheduler.h"

namespace hadal {

const std::vector<SequenceUpdate>& Scheduler::Update(const BatchPlan& plan,
                                                     const StepResult& result) {
  HADAL_CHECK(result.slices.size() == plan.slices.size());
  updates_.clear();
  for (size_t i = 0; i < plan.slices.size(); ++i) {
    HADAL_CHECK(result.slices[i].id == plan.slices[i].id);
    Advance(plan.slices[i], result.slices[i], result, &updates_.emplace_back());
  }
  return updates_;
}

void Scheduler::Advance(const SequenceSlice& slice, const SliceResult& drawn,
                        const StepResult& result, SequenceUpdate* update) {
  Sequence* const sequence = Find(slice.id);
  HADAL_CHECK(sequence != nullptr);
  update->id = slice.id;
  update->num_cached_tokens = sequence->num_cached_tokens;
  update->token_begin = drawn.token_begin;
  if (drawn.error == SliceError::kLogitsNotFinite) {
    update->finish = FinishReason::kError;
    update->error = Status::Internal(fmt::format(
        "the model's logits for position {} are not finite numbers", sequence->num_tokens()));
    return End(sequence);
  }
  HADAL_CHECK((drawn.num_tokens > 0) == slice.wants_tokens &&
              drawn.num_tokens <= slice.num_drafts + 1);
  const int num_agreed = std::max(0, drawn.num_tokens - 1);
  sequence->num_computed += slice.num_tokens - slice.num_drafts + num_agreed;
  sequence->num_shown_tokens = std::max(sequence->num_shown_tokens, sequence->num_computed);
  sequence->drafts.clear();
  if (slice.num_drafts > 0) {
    governor_.NoteOutcome(slice.speculation.drafter, slice.num_drafts, num_agreed,
                          &sequence->draft_record);
  }

  while (update->num_tokens < drawn.num_tokens && update->finish == FinishReason::kNone) {
    const size_t next = static_cast<size_t>(drawn.token_begin + update->num_tokens);
    update->finish = sequence->Append(result.tokens[next].token);
    if (update->finish != FinishReason::kStop) ++update->num_tokens;
  }
  // Behind the end drafts are in vain although they agreed.
  const bool met_stop_token = update->finish == FinishReason::kStop;
  update->num_accepted_drafts = std::min(num_agreed, update->num_tokens + (met_stop_token ? 1 : 0));
  update->num_rejected_drafts = slice.num_drafts - update->num_accepted_drafts;
  PublishFinal(sequence);
  if (update->finish != FinishReason::kNone) return End(sequence);
  if (num_agreed < slice.num_drafts) cache_->Truncate(sequence->num_tokens(), &sequence->table);
  sequence->SetDrafts(
      std::span(result.drafts)
          .subspan(static_cast<size_t>(drawn.draft_begin), static_cast<size_t>(drawn.num_drafts)));
}

// Blocks of prompt positions only, unless all tokens are computed in one form.
void Scheduler::PublishFinal(Sequence* sequence) {
  const int num_shareable =
      limits_.shares_generated_tokens ? sequence->num_tokens() : sequence->num_prompt_tokens();
  cache_->Publish(sequence->tokens(), std::min(sequence->num_computed, num_shareable),
                  &sequence->table);
}

void Scheduler::Retry(const BatchPlan& plan) {
  for (const SequenceSlice& slice : plan.slices) {
    Sequence* const sequence = Find(slice.id);
    HADAL_CHECK(sequence != nullptr);
    if (slice.num_drafts > 0) cache_->Truncate(sequence->num_tokens(), &sequence->table);
    sequence->drafts.clear();
  }
  // The runner may not have looked at them.
  released_.insert(released_.end(), plan.released.begin(), plan.released.end());
}

const std::vector<SequenceUpdate>& Scheduler::Abandon(const BatchPlan& plan, const Status& why) {
  updates_.clear();
  for (const SequenceSlice& slice : plan.slices) {
    Sequence* const sequence = Find(slice.id);
    HADAL_CHECK(sequence != nullptr);
    EndWith(why, sequence);
  }
  return updates_;
}

const std::vector<SequenceUpdate>& Scheduler::Expire(int64_t now_us) {
  updates_.clear();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_us) {
    Sequence* const sequence = Find(deadlines_.begin()->second);
    const double waited_s = static_cast<double>(now_us - sequence->request().arrival_us) * 1e-6;
    EndWith(Status::DeadlineExceeded(fmt::format(
                "the request's deadline passed after {:.1f} s, with {} of its tokens generated",
                waited_s, sequence->num_output_tokens())),
            sequence);
  }
  return updates_;
}

void Scheduler::EndWith(const Status& why, Sequence* sequence) {
  SequenceUpdate& update = updates_.emplace_back();
  update.id = sequence->id();
  update.finish = FinishReason::kError;
  update.error = why;
  update.num_cached_tokens = std::max(0, sequence->num_cached_tokens);
  End(sequence);
}

void Scheduler::End(Sequence* sequence) {
  if (sequence->state == SequenceState::kRunning) {
    running_.erase(std::ranges::find(running_, sequence));
  } else {
    waiting_.Remove(sequence);
  }
  num_saved_blocks_ -= NumSavedBlocks(*sequence);
  cache_->Release(&sequence->table);
  if (sequence->request().deadline_us != 0)
    deadlines_.erase({sequence->request().deadline_us, sequence->id()});
  released_.push_back(sequence->id());
  sequences_.erase(sequence->id());
}

void Scheduler::LoseSaved(SequenceId id) {
  Sequence* const sequence = Find(id);
  if (sequence == nullptr) return;
  num_saved_blocks_ -= NumSavedBlocks(*sequence);
  sequence->num_saved = 0;
}

// Those that a request brought along are not counted: whoever sent it keeps them.
int Scheduler::NumSavedBlocks(const Sequence& sequence) const {
  return sequence.num_cached_tokens < 0 ? 0 : cache_->num_blocks_for(sequence.num_saved);
}

void Scheduler::CheckInvariants() const {
  HADAL_CHECK(std::ranges::is_sorted(running_, ComesBefore()));
  HADAL_CHECK(sequences_.size() == running_.size() + static_cast<size_t>(waiting_.size()));
  std::vector<const BlockTable*> tables;
  int num_saved_blocks = 0;
  size_t num_deadlines = 0;
  for (const auto& [id, sequence] : sequences_) {
    HADAL_CHECK(sequence->num_computed <= sequence->num_tokens());
    const bool is_running = std::ranges::find(running_, sequence.get()) != running_.end();
    HADAL_CHECK(is_running == (sequence->state == SequenceState::kRunning));
    HADAL_CHECK(is_running ? sequence->num_saved == 0
                           : sequence->table.blocks.empty() && sequence->num_computed == 0);
    num_saved_blocks += NumSavedBlocks(*sequence);
    num_deadlines += sequence->request().deadline_us != 0 ? 1 : 0;
    tables.push_back(&sequence->table);
  }
  HADAL_CHECK(num_saved_blocks == num_saved_blocks_ && num_deadlines == deadlines_.size());
  HADAL_CHECK(num_saved_blocks_ <= limits_.max_saved_blocks || num_saved_blocks_ == 0);
  cache_->CheckInvariants(tables);
}

}  // namespace hadal
