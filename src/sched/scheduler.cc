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
    : limits_(limits), cache_(cache), pacer_(limits.pace) {
  HADAL_CHECK(limits.max_sequences > 0 && limits.max_step_tokens > 0);
  HADAL_CHECK(cache->num_blocks_for(limits.max_context_tokens) <= cache->geometry().num_blocks);
  const size_t max_slices = static_cast<size_t>(max_running());
  running_.reserve(max_slices);
  planned_.reserve(max_slices);
  seats_.reserve(max_slices);
  seated_.reserve(max_slices);
  updates_.reserve(max_slices);
  plan_.slices.reserve(max_slices);
  plan_.tokens.reserve(static_cast<size_t>(limits.max_step_tokens));
  plan_.block_ids.reserve(static_cast<size_t>(cache->geometry().num_blocks));
}

// Every sequence that decodes gets at least one token of every step, so no more may run than a step
// has.
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
  HADAL_CHECK(request.num_saved_tokens % cache_->geometry().block_tokens == 0 &&
              request.num_saved_tokens < static_cast<int>(request.prompt.size()));
  int max_total_tokens = limits_.max_context_tokens;
  if (request.max_tokens > 0) {
    const int64_t asked = static_cast<int64_t>(request.prompt.size()) + request.max_tokens;
    max_total_tokens = static_cast<int>(std::min<int64_t>(max_total_tokens, asked));
  }
  if (request.deadline_us != 0) deadlines_.emplace(request.deadline_us, id);
  const int64_t due_us = request.arrival_us + request.priority * limits_.aging_us;
  auto sequence =
      std::make_unique<Sequence>(std::move(request), num_arrivals_++, due_us, max_total_tokens);
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
  load_ = {};
  planned_.clear();
  plan_.saves.clear();
  plan_.restores.clear();
  plan_.moved_blocks.clear();
  ContinueDecoding();
  ReadPrompts();
  ChooseDrafts();
  BuildPlan();
  return plan_;
}

void Scheduler::NoteStepTime(int64_t elapsed_us, int64_t drafting_us) {
  pacer_.Note(load_, elapsed_us);
  if (load_.prompt_work == 0 && !plan_.tokens.empty())
    governor_.NoteStepTime(static_cast<int>(plan_.tokens.size()), elapsed_us - drafting_us);
  // Time of drafters that work side by side cannot be told apart; a server has one as a rule.
  DrafterKind drafter = DrafterKind::kNone;
  int num_proposals = 0;
  for (const SequenceSlice& slice : plan_.slices) {
    if (slice.max_proposals == 0) continue;
    drafter = slice.speculation.drafter;
    num_proposals += slice.max_proposals;
  }
  if (load_.prompt_work == 0) governor_.NoteDrafting(drafter, num_proposals, drafting_us);
}

// Those that decode go first, so that a long prompt does not make their readers wait.
void Scheduler::ContinueDecoding() {
  // By index: preemption shortens the list at its end.
  for (size_t i = 0; i < running_.size(); ++i)
    if (!running_[i]->is_reading()) PlanDecoding(running_[i]);
  load_.num_decoding = static_cast<int>(planned_.size());
}

void Scheduler::PlanDecoding(Sequence* sequence) {
  const int num_others = static_cast<int>(running_.size() - planned_.size()) - 1;
  const int room = budget_tokens_ - num_others;  // one token for each that is still to be planned
  const int num_drafts = std::min(static_cast<int>(sequence->drafts.size()), room - 1);
  if (num_drafts > 0 && cache_->Reserve(sequence->num_tokens() + num_drafts, &sequence->table)) {
    Plan(sequence, 1 + num_drafts);
  } else if (MakeRoom(sequence->num_tokens(), sequence)) {
    Plan(sequence, 1);
  }
}

// Blocks for positions [0, num_tokens): preempts the last in order while they are short. False when
// that was `sequence` itself.
bool Scheduler::MakeRoom(int num_tokens, Sequence* sequence) {
  while (!cache_->Reserve(num_tokens, &sequence->table)) {
    HADAL_CHECK(running_.size() > 1);  // the cache holds any one sequence
    Sequence* const last = running_.back();
    Preempt(last);
    if (last == sequence) return false;
  }
  return true;
}

// Gives the blocks back. Their rows are saved, or computed again later; its prompt's blocks are
// published, so that with luck they are found again.
void Scheduler::Preempt(Sequence* sequence) {
  const auto planned = std::ranges::find(planned_, sequence, &Planned::sequence);
  if (planned != planned_.end()) {
    budget_tokens_ += planned->num_tokens;
    planned_.erase(planned);
  }
  HADAL_CHECK(running_.back() == sequence);
  running_.pop_back();
  const int num_blocks = cache_->num_blocks_for(sequence->num_computed);
  if (num_blocks > 0 && num_saved_blocks_ + num_blocks <= limits_.max_saved_blocks) {
    AddMove(*sequence, 0, num_blocks, &plan_.saves);
    sequence->first_saved = 0;
    sequence->num_saved = sequence->num_computed;
    num_saved_blocks_ += num_blocks;
    ++num_saves_;
  }
  cache_->Release(&sequence->table);
  sequence->num_computed = 0;
  sequence->drafts.clear();
  sequence->state = SequenceState::kWaiting;
  waiting_.Push(sequence);
  has_preempted_ = true;
  ++num_preemptions_;
}

void Scheduler::AddMove(const Sequence& sequence, int first_block, int num_blocks,
                        std::vector<BlockMove>* moves) {
  const auto first = sequence.table.blocks.begin() + first_block;
  moves->push_back({.id = sequence.id(),
                    .first_block = first_block,
                    .num_blocks = num_blocks,
                    .block_begin = static_cast<int>(plan_.moved_blocks.size())});
  plan_.moved_blocks.insert(plan_.moved_blocks.end(), first, first + num_blocks);
}

void Scheduler::Plan(Sequence* sequence, int num_tokens) {
  const int num_drafts = std::max(0, num_tokens - sequence->num_unread());
  planned_.push_back({sequence, num_tokens, num_drafts});
  budget_tokens_ -= num_tokens;
}

// What is left of the step goes to prompts in one order, those that are partly read and those that
// wait for admission: a request of a better priority does not wait for a long prompt to end.
void Scheduler::ReadPrompts() {
  prompt_work_ = pacer_.MaxPromptWork(load_.num_decoding);
  // Whoever was preempted just now would come straight back and drive out the next one.
  bool may_admit = !has_preempted_;
  size_t next = 0;
  auto place = NextToAdmit(waiting_.begin());
  while (budget_tokens_ > 0 && prompt_work_ > 0) {
    while (next < running_.size() && !running_[next]->is_reading()) ++next;
    Sequence* const reading = next < running_.size() ? running_[next] : nullptr;
    may_admit = may_admit && place != waiting_.end() && num_running() < max_running();
    if (may_admit && (reading == nullptr || ComesBefore()(*place, reading))) {
      Sequence* const sequence = *place;
      // In order: a small request does not overtake a large one for ever.
      may_admit = Admit(sequence);
      if (!may_admit) continue;
      place = NextToAdmit(waiting_.Remove(place));
      running_.insert(std::ranges::upper_bound(running_, sequence, ComesBefore()), sequence);
      PlanReading(sequence);
    } else if (reading != nullptr) {
      PlanReading(reading);
    } else {
      return;
    }
    ++next;  // behind `reading`, or back to it: an admitted sequence was inserted before it
  }
}

void Scheduler::PlanReading(Sequence* sequence) {
  const int paced = std::max(1, PromptTokens(sequence->num_computed, prompt_work_));
  const int num_tokens = std::min({sequence->num_unread(), budget_tokens_, paced});
  const double work = PromptWork(sequence->num_computed, num_tokens);
  prompt_work_ -= work;
  load_.prompt_work += work;
  Plan(sequence, num_tokens);
}

// A sequence that shares another one's prompt waits until that one has read it.
bool Scheduler::MayStart(const Sequence& sequence) const {
  const Sequence* leader = Find(sequence.request().prompt_leader);
  return leader == nullptr || leader->has_read_prompt();
}

RequestQueue::Order::const_iterator Scheduler::NextToAdmit(
    RequestQueue::Order::const_iterator place) const {
  while (place != waiting_.end() && !MayStart(**place)) ++place;
  return place;
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
  if (sequence->num_saved > 0) TakeBack(sequence, num_adopted);
  if (sequence->num_cached_tokens < 0) sequence->num_cached_tokens = sequence->num_computed;
  sequence->state = SequenceState::kRunning;
  return true;
}

// Fills the blocks behind the shared ones with the rows that were kept. The move stands in the plan
// even if it is of no block: it tells that they are not needed any more.
void Scheduler::TakeBack(Sequence* sequence, int num_adopted) {
  const int first_block = num_adopted / cache_->geometry().block_tokens;
  const bool is_useful = sequence->first_saved <= num_adopted && num_adopted < sequence->num_saved;
  const int num_blocks = is_useful ? cache_->num_blocks_for(sequence->num_saved) - first_block : 0;
  AddMove(*sequence, first_block, num_blocks, &plan_.restores);
  if (is_useful) sequence->num_computed = sequence->num_saved;
  num_saved_blocks_ -= NumSavedBlocks(*sequence);
  sequence->num_saved = 0;
}

// Guesses are made in this step for the next one, in which all of these take part again.
void Scheduler::ChooseDrafts() {
  seats_.clear();
  seated_.clear();
  for (const Planned& planned : planned_) {
    Sequence* const sequence = planned.sequence;
    sequence->num_wanted_drafts = 0;
    const Speculation& speculation = sequence->request().speculation;
    const int num_certain = planned.num_tokens - planned.num_drafts;
    if (!speculation.is_on() || num_certain < sequence->num_unread()) continue;
    const int num_useful = sequence->NumUsefulDrafts(sequence->num_tokens() + 1);
    seats_.push_back({.record = &sequence->draft_record,
                      .speculation = speculation,
                      .max_drafts = std::min({speculation.max_drafts, num_useful, kMostDrafts})});
    seated_.push_back(sequence);
  }
  governor_.Choose(static_cast<int>(planned_.size()), seats_);
  for (size_t i = 0; i < seats_.size(); ++i) seated_[i]->num_wanted_drafts = seats_[i].num_wanted;
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
  slice->speculation = sequence.request().speculation;
  slice->max_proposals = slice->wants_tokens ? sequence.num_wanted_drafts : 0;
  slice->next_token = slice->wants_tokens ? TokenId{} : *(first + num_certain);
  const bool has_news =
      slice->speculation.is_on() && sequence.num_shown_tokens < sequence.num_computed;
  if (has_news || (slice->wants_tokens && slice->sampling.has_penalties())) {
    slice->num_history = slice->num_cached;
    plan_.history.insert(plan_.history.end(), tokens.begin(), first);
  }
}

}  // namespace hadal
