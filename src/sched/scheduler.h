// Who runs next: continuous batching with prompts read in chunks. Numbers only: neither tensors nor
// text. Engine thread only. docs/engine.md tells the rules at length.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "batch/batch_plan.h"
#include "batch/step_result.h"
#include "cache/kv_cache_manager.h"
#include "sched/draft_governor.h"
#include "sched/request.h"
#include "sched/request_queue.h"
#include "sched/sequence.h"
#include "sched/step_pacer.h"

namespace hadal {

struct SchedulerLimits {
  int max_sequences = 64;      // that run at once
  int max_step_tokens = 512;   // new tokens of a step, all sequences together
  int max_context_tokens = 0;  // prompt and output of one sequence; the cache must hold as many
  // Whether blocks with generated tokens are shared too. Right only when all tokens are computed in
  // one form of attention: otherwise a prompt that reads a generated turn again would get other
  // bits from a warm cache than from a cold one.
  bool shares_generated_tokens = false;
  StepPacerOptions pace = {};
  // How long a sequence waits until it is worth one step of priority more.
  int64_t aging_us = 10'000'000;
  // Blocks of preempted sequences that may lie outside the cache at a time. Those that do not fit
  // are computed again. 0 where the runner cannot copy blocks.
  int max_saved_blocks = 0;
};

// The rules of Add() that need no state: for callers on other threads. kInvalidArgument with both
// numbers when the prompt and one more token exceed the context.
Status CheckRequest(const SchedulerLimits& limits, const Request& request);

// What one step did to one sequence, or what ended it.
struct SequenceUpdate {
  SequenceId id;
  int token_begin = 0, num_tokens = 0;  // into StepResult::tokens: new tokens of the output
  FinishReason finish = FinishReason::kNone;
  Status error;               // of kError
  int num_cached_tokens = 0;  // of the prompt, not computed by itself when it was admitted
  // Drafts that became output or ended it, and those that were in vain.
  int num_accepted_drafts = 0, num_rejected_drafts = 0;
};

class Scheduler {
 public:
  // `cache` must outlive the scheduler and hold at least max_context_tokens.
  Scheduler(const SchedulerLimits& limits, KvCacheManager* cache);

  // Queues a sequence. Errors as CheckRequest. REQUIRES: the id is new.
  Status Add(Request request);

  // Ends a sequence now: a stop string, a client that left. Nothing happens when it has ended.
  void Finish(SequenceId id);

  // Ends those whose deadline has passed, with kError and kDeadlineExceeded. The list lives until
  // the next call that gives updates.
  const std::vector<SequenceUpdate>& Expire(int64_t now_us);

  // True implies that Schedule() returns a plan that is not empty.
  bool has_work() const { return !running_.empty() || !waiting_.empty(); }

  // The next step. The plan lives until the next call; one of Update, Retry and Abandon must
  // follow.
  const BatchPlan& Schedule();
  // The plan that Schedule() gave last, for whoever adds to it what scheduling does not know.
  BatchPlan* mutable_plan() { return &plan_; }

  // How long the runner took for the last plan, and how much of it for guesses.
  void NoteStepTime(int64_t elapsed_us, int64_t drafting_us = 0);

  // Takes in the result of the last plan. One update per slice, in the plan's order; the list lives
  // until the next call.
  const std::vector<SequenceUpdate>& Update(const BatchPlan& plan, const StepResult& result);

  // The step was broken off before it had an effect: all sequences are as before. Drafts go.
  void Retry(const BatchPlan& plan);

  // The step failed: its sequences end with kError, all others are as before.
  const std::vector<SequenceUpdate>& Abandon(const BatchPlan& plan, const Status& why);

  // The rows that a plan's save was to keep are lost: they are computed again.
  void LoseSaved(SequenceId id);

  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return waiting_.size(); }
  int64_t num_preemptions() const { return num_preemptions_; }
  int64_t num_saves() const { return num_saves_; }  // preemptions that kept the rows

  void CheckInvariants() const;  // for tests

 private:
  struct Planned {
    Sequence* sequence = nullptr;
    int num_tokens = 0, num_drafts = 0;
  };

  Sequence* Find(SequenceId id) const;
  int max_running() const;

  // The parts of Schedule(), in their order.
  void ContinueDecoding();
  void ReadPrompts();
  void ChooseDrafts();
  void BuildPlan();

  void PlanDecoding(Sequence* sequence);
  bool MakeRoom(int num_tokens, Sequence* sequence);
  void Preempt(Sequence* sequence);
  void Save(const Sequence& sequence);
  void PlanReading(Sequence* sequence);
  void Plan(Sequence* sequence, int num_tokens);
  RequestQueue::Order::const_iterator NextToAdmit(RequestQueue::Order::const_iterator place) const;
  bool MayStart(const Sequence& sequence) const;
  bool Admit(Sequence* sequence);
  void TakeBack(Sequence* sequence, int num_adopted);
  void AddMove(const Sequence& sequence, int first_block, int num_blocks,
               std::vector<BlockMove>* moves);
  void AddSlice(const Planned& planned, SequenceSlice* slice);

  // The parts of Update().
  void Advance(const SequenceSlice& slice, const SliceResult& drawn, const StepResult& result,
               SequenceUpdate* update);
  void PublishFinal(Sequence* sequence);
  void EndWith(const Status& why, Sequence* sequence);
  void End(Sequence* sequence);
  int NumSavedBlocks(const Sequence& sequence) const;

  const SchedulerLimits limits_;
  KvCacheManager* const cache_;
  StepPacer pacer_;
  DraftGovernor governor_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::set<std::pair<int64_t, SequenceId>> deadlines_;
  RequestQueue waiting_;
  std::vector<Sequence*> running_;    // in the order of ComesBefore: the last is preempted first
  std::vector<SequenceId> released_;  // ended since the last plan
  int64_t num_arrivals_ = 0;
  int64_t num_preemptions_ = 0, num_saves_ = 0;
  int num_saved_blocks_ = 0;  // of preempted sequences

  // The first waiting sequence did not fit while so many blocks were free: not worth trying again
  // before there are more.
  SequenceId blocked_;
  int blocked_at_num_free_ = 0;

  // Of the step in the making. Kept between steps so that none of them allocates.
  int budget_tokens_ = 0;
  double prompt_work_ = 0;  // that may still be planned
  StepLoad load_;
  bool has_preempted_ = false;
  std::vector<Planned> planned_;
  std::vector<DraftSeat> seats_;   // of the planned sequences that guess
  std::vector<Sequence*> seated_;  // the same
  BatchPlan plan_;
  std::vector<SequenceUpdate> updates_;
};

}  // namespace hadal
