#include "sched/scheduler.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

Request MakeRequest(int num_prompt_tokens, int max_tokens, uint64_t seed = 0) {
  Request request;
  request.prompt = FakePrompt(num_prompt_tokens, seed);
  request.max_tokens = max_tokens;
  return request;
}

TEST(Scheduler, GivesTheTextOfTheSequenceAlone) {
  SchedulerHarness harness({});
  const Request request = MakeRequest(7, 20);
  const SequenceId id = harness.Add(request);
  harness.RunAll();
  harness.ExpectAsAlone(id, request);
  EXPECT_EQ(harness.cache.num_free_blocks(), 64);
}

TEST(Scheduler, ReadsAPromptInChunksOfTheBudget) {
  for (const int chunk : {1, 2, 3, 7, 64}) {
    SchedulerHarness harness({.max_step_tokens = chunk});
    const Request request = MakeRequest(30, 8);
    const SequenceId id = harness.Add(request);
    const BatchPlan first = harness.Step();
    EXPECT_EQ(first.slices[0].num_tokens, std::min(chunk, 30));
    EXPECT_EQ(first.slices[0].wants_tokens, chunk >= 30);
    harness.RunAll();
    harness.ExpectAsAlone(id, request);
    EXPECT_LE(harness.runner.largest_step_tokens(), chunk);
  }
}

TEST(Scheduler, LetsThoseThatDecodeGoBeforeALongPrompt) {
  SchedulerHarness harness({.max_step_tokens = 8});
  const SequenceId decoding = harness.Add(FakePrompt(4), 50);
  harness.Step();
  harness.Add(FakePrompt(60, 1), 5);
  for (int step = 0; step < 5; ++step) {
    const BatchPlan plan = harness.Step();
    ASSERT_EQ(plan.slices.size(), 2u);
    EXPECT_EQ(plan.slices[0].id, decoding);
    EXPECT_EQ(plan.slices[0].num_tokens, 1);
    EXPECT_EQ(plan.slices[1].num_tokens, 7);
  }
}

TEST(Scheduler, RunsNoMoreSequencesThanAStepHasTokens) {
  SchedulerHarness harness({.max_step_tokens = 3, .num_drafts = 4});
  for (int i = 0; i < 6; ++i) harness.Add(FakePrompt(4, static_cast<uint64_t>(i)), 12);
  while (harness.scheduler.has_work()) {
    const int num_running = harness.scheduler.num_running();
    EXPECT_LE(num_running, 3);
    EXPECT_GE(static_cast<int>(harness.Step().slices.size()), num_running)
        << "someone was left out";
  }
}

// C049: limits with negative numbers, and a prompt that just fits.
TEST(Scheduler, RefusesAPromptThatLeavesNoRoomAndSaysBothNumbers) {
  SchedulerHarness harness({.max_context_tokens = 32});
  const Status status = harness.scheduler.Add(MakeRequest(32, -1));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("32 tokens are too many for a context of 32"), std::string::npos);
  EXPECT_EQ(status.message().find('-'), std::string::npos);
  for (const int max_tokens : {-1, 1}) {
    const SequenceId id = harness.Add(FakePrompt(31), max_tokens);
    harness.RunAll();
    EXPECT_EQ(harness.outcomes[id].output.size(), 1u);
    EXPECT_EQ(harness.outcomes[id].finish, FinishReason::kLength);
  }
}

// C050: generation reached the end of the context and the process aborted.
TEST(Scheduler, EndsWithLengthAtTheEndOfTheContext) {
  for (const int num_drafts : {0, 3}) {
    SchedulerHarness harness(
        {.max_context_tokens = 32, .num_cache_blocks = 8, .num_drafts = num_drafts});
    const SequenceId id = harness.Add(FakePrompt(10), -1);
    harness.RunAll();
    EXPECT_EQ(harness.outcomes[id].output.size(), 22u);
    EXPECT_EQ(harness.outcomes[id].finish, FinishReason::kLength);
  }
}

TEST(Scheduler, RefusesAnEmptyPromptAndNoTokens) {
  SchedulerHarness harness({});
  EXPECT_EQ(harness.scheduler.Add(Request{}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(harness.scheduler.Add(MakeRequest(3, 0)).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(harness.scheduler.has_work());
}

// C092: the same prompt again crashed or gave another answer. k blocks and one token more.
TEST(Scheduler, GivesTheSameTextFromAWarmCache) {
  for (const int num_tokens : {4, 5, 8, 9, 12, 13}) {
    SchedulerHarness harness({});
    const Request request = MakeRequest(num_tokens, 10);
    for (int round = 0; round < 3; ++round) {
      const SequenceId id = harness.Add(request);
      harness.RunAll();
      harness.ExpectAsAlone(id, request);
      EXPECT_EQ(harness.outcomes[id].num_cached_tokens, round == 0 ? 0 : (num_tokens - 1) / 4 * 4);
    }
  }
}

// A later turn repeats the answer of the first. Its rows were computed as generated tokens, which
// may differ in the last bits from rows of a prompt: so they are not shared.
TEST(Scheduler, SharesOnlyRowsThatWereComputedAsPrompt) {
  SchedulerHarness harness({});
  const Request first = MakeRequest(8, 12);
  const SequenceId first_id = harness.Add(first);
  harness.RunAll();
  Request second = first;
  const std::vector<TokenId>& answer = harness.outcomes[first_id].output;
  second.prompt.insert(second.prompt.end(), answer.begin(), answer.end());
  const SequenceId second_id = harness.Add(second);
  harness.RunAll();
  harness.ExpectAsAlone(second_id, second);
  EXPECT_EQ(harness.outcomes[second_id].num_cached_tokens, 8) << "the whole of the first prompt";
}

TEST(Scheduler, SharesGeneratedTurnsWhenThereIsOneForm) {
  SchedulerHarness harness({.has_one_form = true});
  const Request first = MakeRequest(8, 12);
  const SequenceId first_id = harness.Add(first);
  harness.RunAll();
  Request second = first;
  const std::vector<TokenId>& answer = harness.outcomes[first_id].output;
  second.prompt.insert(second.prompt.end(), answer.begin(), answer.end());
  const SequenceId second_id = harness.Add(second);
  harness.RunAll();
  harness.ExpectAsAlone(second_id, second);
  EXPECT_EQ(harness.outcomes[second_id].num_cached_tokens, 16) << "of 20, all but the last block";
}

// C095: answers were incomplete or wrong after preemption.
TEST(Scheduler, GivesTheSameTextAfterPreemption) {
  for (const int num_drafts : {0, 2}) {
    // Room for one and a half of three requests that end with 50 tokens each.
    SchedulerHarness harness(
        {.max_context_tokens = 60, .num_cache_blocks = 19, .num_drafts = num_drafts});
    std::vector<Request> requests;
    std::vector<SequenceId> ids;
    for (uint64_t i = 0; i < 3; ++i) {
      requests.push_back(MakeRequest(10, 40, i));
      ids.push_back(harness.Add(requests.back()));
    }
    harness.RunAll();
    EXPECT_GT(harness.scheduler.num_preemptions(), 0);
    for (size_t i = 0; i < ids.size(); ++i) {
      harness.ExpectAsAlone(ids[i], requests[i]);
      EXPECT_EQ(harness.outcomes[ids[i]].num_cached_tokens, 0)
          << "counts the start, not the return";
    }
    EXPECT_EQ(harness.cache.num_free_blocks(), 19);
  }
}

// After preemption a sequence must not take blocks of a prompt that repeats its own output.
TEST(Scheduler, DoesNotAdoptItsOwnOutputFromSomeoneElsesPrompt) {
  SchedulerHarness harness({.max_context_tokens = 40, .num_cache_blocks = 12});
  Request victim = MakeRequest(8, 32, 1);
  Request follow = victim;
  const std::vector<TokenId> answer = harness.runner.Expected(victim.prompt, {}, 20, {});
  follow.prompt.insert(follow.prompt.end(), answer.begin(), answer.begin() + 12);
  follow.max_tokens = 20;
  follow.priority = -1;
  const SequenceId victim_id = harness.Add(victim);
  for (int step = 0; step < 15; ++step) harness.Step();
  const SequenceId follow_id = harness.Add(follow);
  harness.RunAll();
  EXPECT_GT(harness.scheduler.num_preemptions(), 0);
  harness.ExpectAsAlone(victim_id, victim);
  harness.ExpectAsAlone(follow_id, follow);
}

TEST(Scheduler, PreemptsTheLatestArrival) {
  SchedulerHarness harness({.max_context_tokens = 40, .num_cache_blocks = 11});
  std::vector<SequenceId> ids;
  for (uint64_t i = 0; i < 2; ++i) ids.push_back(harness.Add(FakePrompt(8, i), 30));
  while (harness.scheduler.num_preemptions() == 0) harness.Step();
  EXPECT_EQ(harness.Step().slices[0].id, ids[0]);
  EXPECT_EQ(harness.scheduler.num_waiting(), 1);
  harness.RunAll();
  EXPECT_EQ(harness.outcomes[ids[1]].output.size(), 30u);
}

TEST(Scheduler, AdmitsByPriorityThenArrival) {
  SchedulerHarness harness({.max_step_sequences = 1});
  Request request = MakeRequest(4, 1);
  const SequenceId plain = harness.Add(request);
  const SequenceId later = harness.Add(request);
  request.priority = -5;
  const SequenceId urgent = harness.Add(request);
  std::vector<SequenceId> order;
  while (harness.scheduler.has_work()) order.push_back(harness.Step().slices[0].id);
  EXPECT_EQ(order, (std::vector<SequenceId>{urgent, plain, later}));
}

TEST(Scheduler, DoesNotLetSmallRequestsOvertakeALargeOneForEver) {
  SchedulerHarness harness({.max_context_tokens = 60, .num_cache_blocks = 16});
  harness.Add(FakePrompt(30, 1), 20);
  harness.Step();
  const SequenceId large = harness.Add(FakePrompt(40, 2), 4);
  const SequenceId small = harness.Add(FakePrompt(2, 3), 1);
  while (harness.outcomes[small].num_ends == 0) harness.Step();
  EXPECT_FALSE(harness.outcomes[large].output.empty());
}

TEST(Scheduler, StartsTheSiblingsOfAPromptOnceItIsRead) {
  SchedulerHarness harness({.max_step_tokens = 16});
  Request request = MakeRequest(40, 6);
  const SequenceId leader = harness.Add(request);
  std::vector<SequenceId> siblings;
  for (int i = 0; i < 3; ++i) {
    Request sibling = request;
    sibling.prompt_leader = leader;
    sibling.sampling.temperature = 1.0f;
    sibling.sampling.seed = static_cast<uint64_t>(i);
    siblings.push_back(harness.Add(sibling));
  }
  harness.RunAll();
  harness.ExpectAsAlone(leader, request);
  for (size_t i = 0; i < siblings.size(); ++i) {
    EXPECT_EQ(harness.outcomes[siblings[i]].num_cached_tokens, 36);
    Request sibling = request;
    sibling.sampling.temperature = 1.0f;
    sibling.sampling.seed = static_cast<uint64_t>(i);
    harness.ExpectAsAlone(siblings[i], sibling);
  }
  EXPECT_LT(harness.runner.num_computed_tokens(), 40 + 3 * 4 + 4 * 6 + 1);
}

TEST(Scheduler, StartsTheSiblingsOfAPromptThatFailed) {
  SchedulerHarness harness({});
  const Request request = MakeRequest(10, 3);
  const SequenceId leader = harness.Add(request);
  Request sibling = request;
  sibling.prompt_leader = leader;
  const SequenceId id = harness.Add(sibling);
  harness.scheduler.Finish(leader);
  harness.RunAll();
  harness.ExpectAsAlone(id, request);
}

// C103, C106: with drafts the answer changed, or had half the length.
TEST(Scheduler, GivesTheSameTextWithDrafts) {
  for (const int error_percent : {0, 30, 100}) {
    for (const int num_drafts : {1, 2, 3}) {
      SchedulerHarness harness({.num_drafts = num_drafts, .draft_error_percent = error_percent});
      const Request request = MakeRequest(9, 50);
      const SequenceId id = harness.Add(request);
      harness.RunAll();
      harness.ExpectAsAlone(id, request);
      EXPECT_EQ(harness.outcomes[id].output.size(), 50u);
      if (error_percent == 0) {
        EXPECT_EQ(harness.outcomes[id].num_rejected, 0);
      }
      if (error_percent == 100) {
        EXPECT_EQ(harness.outcomes[id].num_accepted, 0);
      }
    }
  }
}

TEST(Scheduler, TakesBackTheBlocksOfRejectedDrafts) {
  SchedulerHarness harness({.num_drafts = 9, .draft_error_percent = 100});
  const SequenceId id = harness.Add(FakePrompt(9), 40);
  harness.Step();
  for (int step = 0; step < 10; ++step) {
    EXPECT_EQ(harness.Step().slices[0].num_drafts, 9);
    const int num_tokens = 9 + static_cast<int>(harness.outcomes[id].output.size());
    EXPECT_EQ(64 - harness.cache.num_free_blocks(), harness.cache.num_blocks_for(num_tokens));
  }
}

// C104, C105: text went on after the end mark; "length" was given although a stop came first.
TEST(Scheduler, EndsARunOfAcceptedTokensAsGiven) {
  const Json vectors = ReadGoldenJson("sampling/spec_finish_vectors.json");
  ASSERT_EQ(vectors["cases"].size(), 4u);
  for (const Json& item : vectors["cases"]) {
    KvCacheManager cache({.num_blocks = 16, .block_tokens = 4});
    Scheduler scheduler({.max_context_tokens = 64}, &cache);
    Request request = MakeRequest(3, item["max_tokens"].get<int>());
    request.id = {0};
    for (const Json& id : item["stop_ids"]) request.stop_tokens.push_back({id.get<int>()});
    ASSERT_TRUE(scheduler.Add(request).ok());
    std::vector<int> emitted;
    FinishReason finish = FinishReason::kNone;
    std::vector<TokenId> drafts;
    // The first step gives the first token of a run; its drafts are the rest of the run.
    for (const Json& run : item["step_accepts"]) {
      std::vector<std::vector<int>> steps;
      if (scheduler.num_running() == 0) {
        steps = {{run[0].get<int>()}, {}};
        for (size_t i = 1; i < run.size(); ++i) steps[1].push_back(run[i].get<int>());
      } else {
        steps = {run.get<std::vector<int>>()};
      }
      for (size_t i = 0; i < steps.size() && finish == FinishReason::kNone; ++i) {
        const BatchPlan plan = scheduler.Schedule();
        StepResult result;
        SliceResult drawn{.id = {0}};
        // As many tokens as there were drafts, and one.
        for (const int token : steps[i]) {
          if (drawn.num_tokens > plan.slices[0].num_drafts) break;
          result.tokens.push_back({.token = {token}});
          ++drawn.num_tokens;
        }
        for (int k = 0; k < 5; ++k) result.drafts.push_back({50});
        drawn.num_drafts = 5;
        result.slices.push_back(drawn);
        const SequenceUpdate update = scheduler.Update(plan, result)[0];
        for (int k = 0; k < update.num_tokens; ++k)
          emitted.push_back(result.tokens[update.token_begin + k].token.value);
        finish = update.finish;
      }
    }
    EXPECT_EQ(emitted, item["expect"]["emitted"].get<std::vector<int>>());
    EXPECT_EQ(finish,
              item["expect"]["finish"] == "stop" ? FinishReason::kStop : FinishReason::kLength);
    EXPECT_EQ(cache.num_free_blocks(), 16);
  }
}

// C056: NaN logits of one sequence must not touch the others.
TEST(Scheduler, EndsOnlyTheSequenceWhoseLogitsAreNotFinite) {
  SchedulerHarness harness({});
  std::vector<Request> requests;
  std::vector<SequenceId> ids;
  for (uint64_t i = 0; i < 3; ++i) {
    requests.push_back(MakeRequest(6, 10, i));
    ids.push_back(harness.Add(requests.back()));
  }
  harness.Step();
  harness.runner.broken.insert(ids[1]);
  harness.RunAll();
  harness.ExpectAsAlone(ids[0], requests[0]);
  harness.ExpectAsAlone(ids[2], requests[2]);
  EXPECT_EQ(harness.outcomes[ids[1]].finish, FinishReason::kError);
  EXPECT_NE(harness.outcomes[ids[1]].error.find("position 7 are not finite"), std::string::npos)
      << harness.outcomes[ids[1]].error;
  EXPECT_EQ(harness.cache.num_free_blocks(), 64);
}

TEST(Scheduler, EndsTheSequencesOfAFailedStepAndGoesOn) {
  SchedulerHarness harness({.max_step_sequences = 2});
  std::vector<Request> requests;
  std::vector<SequenceId> ids;
  for (uint64_t i = 0; i < 3; ++i) {
    requests.push_back(MakeRequest(6, 10, i));
    ids.push_back(harness.Add(requests.back()));
  }
  harness.Step();
  harness.runner.before_step = [](const BatchPlan&) {
    return Status::Internal("the device is gone");
  };
  harness.Step();
  harness.runner.before_step = nullptr;
  harness.RunAll();
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(harness.outcomes[ids[i]].finish, FinishReason::kError);
    EXPECT_EQ(harness.outcomes[ids[i]].error, "the device is gone");
    EXPECT_EQ(harness.outcomes[ids[i]].num_ends, 1);
  }
  harness.ExpectAsAlone(ids[2], requests[2]);
}

TEST(Scheduler, FreesEverythingWhenASequenceIsFinishedFromOutside) {
  SchedulerHarness harness({.max_step_sequences = 1});
  const SequenceId running = harness.Add(FakePrompt(6), 10);
  const SequenceId waiting = harness.Add(FakePrompt(6), 10);
  harness.Step();
  harness.scheduler.Finish(waiting);
  harness.scheduler.Finish(running);
  harness.scheduler.Finish(running);
  EXPECT_FALSE(harness.scheduler.has_work());
  EXPECT_EQ(harness.cache.num_free_blocks(), 64);
  harness.Add(FakePrompt(6), 1);
  EXPECT_EQ(harness.Step().released, (std::vector<SequenceId>{waiting, running}));
}

TEST(Scheduler, GivesTheHistoryOnlyToPenalties) {
  SchedulerHarness harness({});
  Request request = MakeRequest(6, 4);
  harness.Add(request);
  request.sampling.presence_penalty = 1.0f;
  request.prompt = FakePrompt(6, 3);
  harness.Add(request);
  harness.Step();
  const BatchPlan plan = harness.Step();
  EXPECT_EQ(plan.slices[0].num_history, 0);
  EXPECT_EQ(plan.slices[1].num_history, 6);
  EXPECT_EQ(plan.history, request.prompt);
}

TEST(Scheduler, KeepsSaltsApart) {
  SchedulerHarness harness({});
  Request request = MakeRequest(20, 1);
  harness.Add(request);
  harness.RunAll();
  request.cache_salt = PrefixSalt("x", "");
  const SequenceId salted = harness.Add(request);
  harness.RunAll();
  EXPECT_EQ(harness.outcomes[salted].num_cached_tokens, 0);
}

// After a few steps of warm-up, scheduling and updating take no memory.
TEST(Scheduler, AllocatesNothingPerStep) {
  for (const int num_drafts : {0, 2}) {
    SchedulerHarness harness(
        {.max_context_tokens = 200, .num_cache_blocks = 400, .num_drafts = num_drafts});
    for (uint64_t i = 0; i < 6; ++i) {
      Request request = MakeRequest(10, 150, i);
      request.sampling.logit_bias = {{TokenId{3}, 1.0f}};
      harness.Add(request);
    }
    for (int step = 0; step < 5; ++step) harness.Step();
    for (int step = 0; step < 20; ++step) {
      const AllocGuard schedule_guard;
      const BatchPlan& plan = harness.scheduler.Schedule();
      EXPECT_EQ(schedule_guard.count(), 0) << "step " << step;
      ASSERT_EQ(plan.slices.size(), 6u);
      StepResult result;
      ASSERT_TRUE(harness.runner.Execute(plan, &result).ok());
      const AllocGuard update_guard;
      harness.scheduler.Update(plan, result);
      EXPECT_EQ(update_guard.count(), 0) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace hadal
