// A scheduler, its cache and a fake runner, driven by hand.
#pragma once

#include <map>
#include <memory>
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

  explicit SchedulerHarness(const FakeRunnerOptions& options)
      : runner(options),
        cache({.num_blocks = options.num_cache_blocks, .block_tokens = options.block_tokens}),
        scheduler({.max_sequences = options.max_step_sequences,
                   .max_step_tokens = options.max_step_tokens,
                   .max_context_tokens = runner.info().max_context_tokens,
                   .shares_generated_tokens = options.has_one_form},
                  &cache) {}

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

  FakeRunner runner;
  KvCacheManager cache;
  Scheduler scheduler;
  std::map<SequenceId, Outcome> outcomes;

 private:
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
      outcome.error = update.error;
      ++outcome.num_ends;
    }
  }

  int64_t next_id_ = 0;
};

}  // namespace hadal
