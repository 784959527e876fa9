#include "sched/scheduler.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace hadal {

Status CheckRequest(const SchedulerLimits& limits, const Request& request) {
  if (request.prompt.empty()) return Status::InvalidArgument("prompt: at least one token expected");
  if (request.max_tokens == 0 || request.max_tokens < -1) {
    return Status::InvalidArgument(
        fmt::format("max_tokens: at least 1 expected, found {}", request.max_tokens));
  }
  if (request.prompt.size() >= static_cast<size_t>(limits.max_context_tokens)) {
    return Status::InvalidArgument(
        fmt::format("prompt: {} tokens are too many for a context of {} tokens, which holds the "
                    "prompt and at least one token of the answer",
                    request.prompt.size(), limits.max_context_tokens));
  }
  return Status::Ok();
}

Scheduler::Scheduler(const SchedulerLimits& limits, KvCacheManager* cache)
    : limits_(limits), cache_(cache) {
  HADAL_CHECK(limits.max_sequences > 0 && limits.max_step_tokens > 0);
  HADAL_CHECK(cache->num_blocks_for(limits.max_context_tokens) <= cache->geometry().num_blocks);
  const size_t max_slices = static_cast<size_t>(max_running());
  running_.reserve(max_slices);
  planned_.reserve(max_slices);
  updates_.reserve(max_slices);
  plan_.slices.reserve(max_slices);
  plan_.tokens.reserve(static_cast<size_t>(limits.max_step_tokens));
  plan_.block_ids.reserve(static_cast<size_t>(cache->geometry().num_blocks));
}

// Every running sequence gets at least one token of every step, so no more may run than a step has.
int Scheduler::max_running() const {
  return std::min(limits_.max_sequences, limits_.max_step_tokens);
}

Sequence* Scheduler::Find(SequenceId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

Status Scheduler::Add(Request request) {
  RETURN_IF_ERROR(CheckRequest(limits_, request));
  const SequenceId id = request.id;
  HADAL_CHECK(Find(id) == nullptr);
  int max_total_tokens = limits_.max_context_tokens;
  if (request.max_tokens > 0) {
    const int64_t asked = static_cast<int64_t>(request.prompt.size()) + request.max_tokens;
    max_total_tokens = static_cast<int>(std::min<int64_t>(max_total_tokens, asked));
  }
  auto sequence = std::make_unique<Sequence>(std::move(request), num_arrivals_++, max_total_tokens);
  waiting_.Push(sequence.get());
  sequences_.emplace(id, std::move(sequence));
  return Status::Ok();
}

void Scheduler::Finish(SequenceId id) {
  if (Sequence* sequence = Find(id)) End(sequence);
}

const BatchPlan& Scheduler::Schedule() {
  budget_tokens_ = limits_.max_step_tokens;
  has_preempted_ = false;
  planned_.clear();
  ContinueRunning();
  // Whoever was preempted just now would come straight back and drive out the next one.
  if (!has_preempted_) AdmitWaiting();
  BuildPlan();
  return plan_;
}

// Those that decode go first, so that a long prompt does not make their readers wait; what they
// leave of the step goes to prompts in the order of arrival.
void Scheduler::ContinueRunning() {
  // By index: preemption shortens the list at its end.
  for (size_t i = 0; i < running_.size(); ++i)
    if (!running_[i]->is_reading()) PlanRunning(running_[i]);
  for (size_t i = 0; i < running_.size(); ++i)
    if (running_[i]->is_reading()) PlanRunning(running_[i]);
}

void Scheduler::PlanRunning(Sequence* sequence) {
  const int num_others = static_cast<int>(running_.size() - planned_.size()) - 1;
  const int room = budget_tokens_ - num_others;  // one token for each that is still to be planned
  const int num_certain = std::min(sequence->num_unread(), room);
  const int num_drafts =
      std::min(static_cast<int>(sequence->drafts.size()), room - sequence->num_unread());
  if (num_drafts > 0 && cache_->Reserve(sequence->num_tokens() + num_drafts, &sequence->table)) {
    Plan(sequence, num_certain + num_drafts);
  } else if (MakeRoom(sequence->num_computed + num_certain, sequence)) {
    Plan(sequence, num_certain);
  }
}

// Blocks for positions [0, num_tokens): preempts the latest arrival while they are short. False
// when that was `sequence` itself.
bool Scheduler::MakeRoom(int num_tokens, Sequence* sequence) {
  while (!cache_->Reserve(num_tokens, &sequence->table)) {
    HADAL_CHECK(running_.size() > 1);  // the cache holds any one sequence
    Sequence* const last = running_.back();
    Preempt(last);
    if (last == sequence) return false;
  }
  return true;
}

// Gives the blocks back and computes everything again later. Its prompt's blocks are published, so
// that with luck they are found again.
void Scheduler::Preempt(Sequence* sequence) {
  const auto planned = std::ranges::find(planned_, sequence, &Planned::sequence);
  if (planned != planned_.end()) {
    budget_tokens_ += planned->num_tokens;
    planned_.erase(planned);
  }
  HADAL_CHECK(running_.back() == sequence);
  running_.pop_back();
  cache_->Release(&sequence->table);
  sequence->num_computed = 0;
  sequence->drafts.clear();
  sequence->state = SequenceState::kWaiting;
  waiting_.Push(sequence);
  has_preempted_ = true;
  ++num_preemptions_;
}

void Scheduler::Plan(Sequence* sequence, int num_tokens) {
  const int num_drafts = std::max(0, num_tokens - sequence->num_unread());
  planned_.push_back({sequence, num_tokens, num_drafts});
  budget_tokens_ -= num_tokens;
}

void Scheduler::AdmitWaiting() {
  auto place = waiting_.begin();
  while (place != waiting_.end() && budget_tokens_ > 0 && num_running() < max_running()) {
    Sequence* const sequence = *place;
    if (!MayStart(*sequence)) {
      ++place;
      continue;
    }
    // In order: a small request does not overtake a large one for ever.
    if (!Admit(sequence)) return;
    place = waiting_.Remove(place);
    running_.insert(std::ranges::upper_bound(running_, sequence, ComesBefore()), sequence);
    Plan(sequence, std::min(sequence->num_unread(), budget_tokens_));
  }
}

// A sequence that shares another one's prompt waits until that one has read it.
bool Scheduler::MayStart(const Sequence& sequence) const {
  const Sequence* leader = Find(sequence.request().prompt_leader);
  return leader == nullptr || leader->has_read_prompt();
}

// Shares what is cached and takes blocks for all tokens that are known, so that reading never has
// to drive anyone out. One free block per running sequence is left, because each may need one soon.
bool Scheduler::Admit(Sequence* sequence) {
  if (sequence->id() == blocked_ && cache_->num_free_blocks() <= blocked_at_num_free_) return false;
  const int num_free = cache_->num_free_blocks();
  // The rows of prompt positions are shared with prompts only. After preemption the prompt's last
  // token needs no logits, so that all of the prompt may be shared.
  const int num_shareable = limits_.shares_generated_tokens || sequence->num_output_tokens() == 0
                                ? sequence->num_tokens()
                                : sequence->num_prompt_tokens() + 1;
  sequence->ReserveMemory(cache_->geometry().block_tokens);
  const int num_adopted =
      cache_->Adopt(sequence->tokens().first(static_cast<size_t>(num_shareable)), &sequence->table);
  const int num_missing = cache_->num_blocks_for(sequence->num_tokens()) -
                          static_cast<int>(sequence->table.blocks.size());
  if (cache_->num_free_blocks() - num_missing < num_running() ||
      !cache_->Reserve(sequence->num_tokens(), &sequence->table)) {
    cache_->Release(&sequence->table);
    blocked_ = sequence->id();
    blocked_at_num_free_ = num_free;
    return false;
  }
  sequence->num_computed = num_adopted;
  if (sequence->num_cached_tokens < 0) sequence->num_cached_tokens = num_adopted;
  sequence->state = SequenceState::kRunning;
  return true;
}

void Scheduler::BuildPlan() {
  plan_.tokens.clear();
  plan_.block_ids.clear();
  plan_.history.clear();
  // Slices are assigned over, not cleared: their own lists keep their memory.
  plan_.slices.resize(planned_.size());
  for (size_t i = 0; i < planned_.size(); ++i) AddSlice(planned_[i], &plan_.slices[i]);
  plan_.released.swap(released_);
  released_.clear();
}

void Scheduler::AddSlice(const Planned& planned, SequenceSlice* slice) {
  const Sequence& sequence = *planned.sequence;
  const std::span<const TokenId> tokens = sequence.tokens();
  const int num_certain = planned.num_tokens - planned.num_drafts;
  const auto first = tokens.begin() + sequence.num_computed;
  slice->id = sequence.id();
  slice->token_begin = static_cast<int>(plan_.tokens.size());
  slice->num_tokens = planned.num_tokens;
  slice->num_cached = sequence.num_computed;
  slice->num_prompt_tokens = sequence.num_prompt_tokens();
  slice->num_drafts = planned.num_drafts;
  slice->wants_tokens = num_certain == sequence.num_unread();
  slice->sampling = sequence.request().sampling;
  plan_.tokens.insert(plan_.tokens.end(), first, first + num_certain);
  plan_.tokens.insert(plan_.tokens.end(), sequence.drafts.begin(),
                      sequence.drafts.begin() + planned.num_drafts);

  slice->block_begin = static_cast<int>(plan_.block_ids.size());
  slice->num_blocks = cache_->num_blocks_for(slice->num_cached + slice->num_tokens);
  plan_.block_ids.insert(plan_.block_ids.end(), sequence.table.blocks.begin(),
                         sequence.table.blocks.begin() + slice->num_blocks);

  slice->history_begin = static_cast<int>(plan_.history.size());
  slice->num_history = 0;
  if (slice->wants_tokens && slice->sampling.has_penalties()) {
    slice->num_history = slice->num_cached;
    plan_.history.insert(plan_.history.end(), tokens.begin(), first);
  }
}

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
    update->error = fmt::format("the model's logits for position {} are not finite numbers",
                                sequence->num_tokens());
    return End(sequence);
  }
  HADAL_CHECK((drawn.num_tokens > 0) == slice.wants_tokens &&
              drawn.num_tokens <= slice.num_drafts + 1);
  update->num_accepted_drafts = std::max(0, drawn.num_tokens - 1);
  update->num_rejected_drafts = slice.num_drafts - update->num_accepted_drafts;
  sequence->num_computed += slice.num_tokens - update->num_rejected_drafts;
  sequence->drafts.clear();

  while (update->num_tokens < drawn.num_tokens && update->finish == FinishReason::kNone) {
    const size_t next = static_cast<size_t>(drawn.token_begin + update->num_tokens);
    update->finish = sequence->Append(result.tokens[next].token);
    if (update->finish != FinishReason::kStop) ++update->num_tokens;
  }
  PublishFinal(sequence);
  if (update->finish != FinishReason::kNone) return End(sequence);
  if (update->num_rejected_drafts > 0) cache_->Truncate(sequence->num_tokens(), &sequence->table);
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

const std::vector<SequenceUpdate>& Scheduler::Abandon(const BatchPlan& plan, const Status& why) {
  updates_.clear();
  for (const SequenceSlice& slice : plan.slices) {
    Sequence* const sequence = Find(slice.id);
    HADAL_CHECK(sequence != nullptr);
    SequenceUpdate& update = updates_.emplace_back();
    update.id = slice.id;
    update.finish = FinishReason::kError;
    update.error = why.message();
    update.num_cached_tokens = sequence->num_cached_tokens;
    End(sequence);
  }
  return updates_;
}

void Scheduler::End(Sequence* sequence) {
  if (sequence->state == SequenceState::kRunning) {
    running_.erase(std::ranges::find(running_, sequence));
  } else {
    waiting_.Remove(sequence);
  }
  cache_->Release(&sequence->table);
  released_.push_back(sequence->id());
  sequences_.erase(sequence->id());
}

void Scheduler::CheckInvariants() const {
  HADAL_CHECK(std::ranges::is_sorted(running_, ComesBefore()));
  HADAL_CHECK(sequences_.size() == running_.size() + static_cast<size_t>(waiting_.size()));
  std::vector<const BlockTable*> tables;
  for (const auto& [id, sequence] : sequences_) {
    HADAL_CHECK(sequence->num_computed <= sequence->num_tokens());
    const bool is_running = std::ranges::find(running_, sequence.get()) != running_.end();
    HADAL_CHECK(is_running == (sequence->state == SequenceState::kRunning));
    if (!is_running) HADAL_CHECK(sequence->table.blocks.empty() && sequence->num_computed == 0);
    tables.push_back(&sequence->table);
  }
  cache_->CheckInvariants(tables);
}

}  // namespace hadal
