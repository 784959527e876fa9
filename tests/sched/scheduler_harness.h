// A scheduler, its cache and a fake runner, driven by hand.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "sched/scheduler.h"
#include "tests/support/fake_runner.h"

namespace hadal {

class SchedulerHarness {
 public:
  struct Outcome {
    std::vector<TokenId> output;
    FinishReason finish = FinishReason::kNone;
    std::string error;
    int num_cached_tokens = 0;
    int num_accepted = 0, num_rejected = 0;
    int num_ends = 0;
  };

  explicit SchedulerHarness(const FakeRunnerOptions& options, SchedulerLimits limits = {})
      : runner(options),
        cache({.num_blocks = options.num_cache_blocks, .block_tokens = options.block_tokens}),
        scheduler(Complete(limits, options), &cache) {}

  SequenceId Add(Request request) {
    request.id = {next_id_++};
    const SequenceId id = request.id;
    const Status status = scheduler.Add(std::move(request));
    EXPECT_TRUE(status.ok()) << status.message();
    outcomes[id];
    return id;
  }

  SequenceId Add(std::vector<TokenId> prompt, int max_tokens) {
    Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    return Add(std::move(request));
  }

  // One step; returns its plan. REQUIRES: there is work.
  BatchPlan Step() {
    HADAL_CHECK(scheduler.has_work());
    const BatchPlan& plan = scheduler.Schedule();
    EXPECT_FALSE(plan.slices.empty());
    MoveRows(plan);
    StepResult result;
    const Status status = runner.Execute(plan, &result);
    const BatchPlan copy = plan;
    Note(status.ok() ? scheduler.Update(plan, result) : scheduler.Abandon(plan, status), result);
    scheduler.CheckInvariants();
    return copy;
  }

  void RunAll(int max_steps = 100000) {
    for (int step = 0; scheduler.has_work(); ++step) {
      ASSERT_LT(step, max_steps) << "no end in sight";
      Step();
    }
  }

  // Ends a sequence from outside, as a client that leaves does.
  void Cancel(SequenceId id) {
    scheduler.Finish(id);
    saved.erase(id);
    scheduler.CheckInvariants();
    ++outcomes[id].num_ends;
    outcomes[id].finish = FinishReason::kCancelled;
  }

  // Ends those whose deadline has passed.
  void Expire(int64_t now_us) {
    for (const SequenceUpdate& update : scheduler.Expire(now_us)) {
      saved.erase(update.id);
      outcomes[update.id].finish = update.finish;
      outcomes[update.id].error = update.error.message();
      ++outcomes[update.id].num_ends;
    }
    scheduler.CheckInvariants();
  }

  // The output equals what the prompt gives alone.
  void ExpectAsAlone(SequenceId id, const Request& request) {
    const Outcome& outcome = outcomes[id];
    EXPECT_EQ(outcome.num_ends, 1);
    const int room = runner.info().max_context_tokens - static_cast<int>(request.prompt.size());
    const int limit = request.max_tokens < 0 ? room : std::min(request.max_tokens, room);
    EXPECT_EQ(outcome.output,
              runner.Expected(request.prompt, request.sampling, limit, request.stop_tokens));
    EXPECT_EQ(outcome.finish, static_cast<int>(outcome.output.size()) == limit
                                  ? FinishReason::kLength
                                  : FinishReason::kStop);
  }

  // Saves and restores rows as the plan says, as the engine does before a step.
  void MoveRows(const BatchPlan& plan) {
    const size_t block_bytes = static_cast<size_t>(runner.info().block_bytes);
    for (const BlockMove& move : plan.saves) {
      EXPECT_FALSE(saved.contains(move.id));
      std::vector<std::byte>& bytes = saved[move.id];
      bytes.resize(static_cast<size_t>(move.num_blocks) * block_bytes);
      EXPECT_TRUE(runner.CopyBlocksOut(BlocksOf(plan, move), bytes).ok());
    }
    for (const BlockMove& move : plan.restores) {
      HADAL_CHECK(saved.contains(move.id));
      const std::span<const std::byte> bytes = saved[move.id];
      HADAL_CHECK(
          runner
              .CopyBlocksIn(bytes.subspan(static_cast<size_t>(move.first_block) * block_bytes,
                                          static_cast<size_t>(move.num_blocks) * block_bytes),
                            BlocksOf(plan, move))
              .ok());
      saved.erase(move.id);
    }
  }

  FakeRunner runner;
  KvCacheManager cache;
  Scheduler scheduler;
  std::map<SequenceId, Outcome> outcomes;
  std::map<SequenceId, std::vector<std::byte>> saved;  // rows outside the cache

 private:
  static SchedulerLimits Complete(SchedulerLimits limits, const FakeRunnerOptions& options) {
    limits.max_sequences = options.max_step_sequences;
    limits.max_step_tokens = options.max_step_tokens;
    limits.max_context_tokens =
        std::min(options.max_context_tokens, options.num_cache_blocks * options.block_tokens);
    limits.shares_generated_tokens = options.has_one_form;
    return limits;
  }

  static std::span<const BlockId> BlocksOf(const BatchPlan& plan, const BlockMove& move) {
    return std::span(plan.moved_blocks)
        .subspan(static_cast<size_t>(move.block_begin), static_cast<size_t>(move.num_blocks));
  }

  void Note(const std::vector<SequenceUpdate>& updates, const StepResult& result) {
    for (const SequenceUpdate& update : updates) {
      Outcome& outcome = outcomes[update.id];
      for (int i = 0; i < update.num_tokens; ++i)
        outcome.output.push_back(result.tokens[update.token_begin + i].token);
      outcome.num_cached_tokens = update.num_cached_tokens;
      outcome.num_accepted += update.num_accepted_drafts;
      outcome.num_rejected += update.num_rejected_drafts;
      if (update.finish == FinishReason::kNone) continue;
      outcome.finish = update.finish;
      outcome.error = update.error.message();
      ++outcome.num_ends;
    }
  }

  int64_t next_id_ = 0;
};

}  // namespace hadal
