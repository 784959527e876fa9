// Preemption with and without room to keep the rows, rows that a request brings along, deadlines,
// priority and steps that are broken off.
#include <vector>

#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"

namespace hadal {
namespace {

Request MakeRequest(int num_prompt_tokens, int max_tokens, uint64_t seed = 0) {
  Request request;
  request.prompt = FakePrompt(num_prompt_tokens, seed);
  request.max_tokens = max_tokens;
  return request;
}

// Two sequences that together outgrow eleven blocks of four tokens.
constexpr FakeRunnerOptions kScarce{.max_context_tokens = 40, .num_cache_blocks = 11};

TEST(Preemption, KeepsTheRowsAndGoesOnWhereItWas) {
  SchedulerHarness harness(kScarce, {.max_saved_blocks = 11});
  std::vector<Request> requests{MakeRequest(8, 30, 1), MakeRequest(8, 30, 2)};
  std::vector<SequenceId> ids{harness.Add(requests[0]), harness.Add(requests[1])};
  harness.RunAll();
  EXPECT_EQ(harness.scheduler.num_preemptions(), 1);
  EXPECT_EQ(harness.scheduler.num_saves(), 1);
  for (size_t i = 0; i < 2; ++i) harness.ExpectAsAlone(ids[i], requests[i]);
  // The last token of each has no row.
  EXPECT_EQ(harness.runner.num_computed_tokens(), 2 * 37) << "no row was computed twice";
  EXPECT_TRUE(harness.saved.empty());
}

TEST(Preemption, ComputesAgainWhatDoesNotFitOutside) {
  SchedulerHarness harness(kScarce, {.max_saved_blocks = 2});
  std::vector<Request> requests{MakeRequest(8, 30, 1), MakeRequest(8, 30, 2)};
  std::vector<SequenceId> ids{harness.Add(requests[0]), harness.Add(requests[1])};
  harness.RunAll();
  EXPECT_EQ(harness.scheduler.num_preemptions(), 1);
  EXPECT_EQ(harness.scheduler.num_saves(), 0);
  for (size_t i = 0; i < 2; ++i) harness.ExpectAsAlone(ids[i], requests[i]);
}

TEST(Preemption, ComputesAgainWhatWasLostOutside) {
  SchedulerHarness harness(kScarce, {.max_saved_blocks = 11});
  std::vector<Request> requests{MakeRequest(8, 30, 1), MakeRequest(8, 30, 2)};
  std::vector<SequenceId> ids{harness.Add(requests[0]), harness.Add(requests[1])};
  while (harness.scheduler.num_saves() == 0) harness.Step();
  harness.saved.clear();
  harness.scheduler.LoseSaved(ids[1]);
  harness.scheduler.CheckInvariants();
  harness.RunAll();
  for (size_t i = 0; i < 2; ++i) harness.ExpectAsAlone(ids[i], requests[i]);
}

TEST(Preemption, GivesTheRoomOutsideBackWhenASavedSequenceIsCancelled) {
  SchedulerHarness harness(kScarce, {.max_saved_blocks = 6});
  for (int round = 0; round < 3; ++round) {
    const uint64_t seed = static_cast<uint64_t>(10 * round);
    const SequenceId first = harness.Add(FakePrompt(8, seed), 30);
    const SequenceId second = harness.Add(FakePrompt(8, seed + 1), 30);
    const int64_t num_saves = harness.scheduler.num_saves();
    while (harness.scheduler.num_saves() == num_saves) harness.Step();
    harness.Cancel(second);
    harness.RunAll();
    EXPECT_EQ(harness.outcomes[first].output.size(), 30u);
    EXPECT_EQ(harness.cache.num_free_blocks(), 11);
  }
}

// A prompt whose rows were kept on disk: nothing of them is computed, and the text is the same.
TEST(Preemption, TakesRowsThatARequestBringsAlong) {
  SchedulerHarness donor({}), harness({});
  Request request = MakeRequest(20, 10);
  const SequenceId donor_id = donor.Add(request);
  const BatchPlan plan = donor.Step();
  std::vector<std::byte> rows(4 * static_cast<size_t>(donor.runner.info().block_bytes));
  ASSERT_TRUE(donor.runner.CopyBlocksOut(std::span(plan.block_ids).first(4), rows).ok());

  request.num_saved_tokens = 16;
  const SequenceId id = harness.Add(request);
  harness.saved[id] = rows;
  harness.RunAll();
  harness.ExpectAsAlone(id, request);
  EXPECT_EQ(harness.outcomes[id].num_cached_tokens, 16);
  EXPECT_EQ(harness.runner.num_computed_tokens(), 4 + 9);
  // They are like any others: the next request shares them.
  request.num_saved_tokens = 0;
  const SequenceId next = harness.Add(request);
  harness.RunAll();
  EXPECT_EQ(harness.outcomes[next].num_cached_tokens, 16);
  EXPECT_EQ(donor.outcomes[donor_id].num_ends, 0);
}

TEST(Deadline, EndsTheSequenceWhereverItIs) {
  SchedulerHarness harness({.max_step_sequences = 1});
  Request request = MakeRequest(4, 50);
  request.deadline_us = 2'000'000;
  const SequenceId running = harness.Add(request);
  request.deadline_us = 1'000'000;
  const SequenceId waiting = harness.Add(request);
  const SequenceId patient = harness.Add(MakeRequest(4, 5, 9));
  harness.Step();
  harness.Expire(999'999);
  EXPECT_EQ(harness.outcomes[waiting].num_ends, 0);
  harness.Expire(1'000'000);
  EXPECT_EQ(harness.outcomes[waiting].finish, FinishReason::kError);
  EXPECT_EQ(harness.outcomes[running].num_ends, 0);
  harness.Step();
  harness.Expire(3'000'000);
  EXPECT_EQ(harness.outcomes[running].error,
            "the request's deadline passed after 3.0 s, with 2 of its tokens generated");
  harness.RunAll();
  EXPECT_EQ(harness.outcomes[patient].output.size(), 5u);
  EXPECT_EQ(harness.cache.num_free_blocks(), 64);
}

TEST(Priority, ReadsAnUrgentPromptBeforeTheRestOfALongOne) {
  SchedulerHarness harness({.max_step_tokens = 8});
  harness.Add(FakePrompt(100), 1);
  harness.Step();
  Request urgent = MakeRequest(16, 1, 2);
  urgent.priority = -1;
  const SequenceId id = harness.Add(urgent);
  EXPECT_EQ(harness.Step().slices[0].id, id);
  harness.Step();
  EXPECT_EQ(harness.outcomes[id].num_ends, 1);
}

TEST(Priority, IsOvertakenByAging) {
  SchedulerHarness harness({.max_step_sequences = 1}, {.aging_us = 100});
  harness.Add(FakePrompt(4), 3);
  harness.Step();
  Request request = MakeRequest(4, 1);
  request.priority = 2;
  const SequenceId old = harness.Add(request);
  request.priority = 0;
  request.arrival_us = 199;
  const SequenceId overtaking = harness.Add(request);
  request.arrival_us = 201;
  const SequenceId late = harness.Add(request);
  std::vector<SequenceId> order;
  while (harness.scheduler.has_work()) order.push_back(harness.Step().slices[0].id);
  EXPECT_EQ((std::vector<SequenceId>{order.end() - 3, order.end()}),
            (std::vector<SequenceId>{overtaking, old, late}));
}

TEST(Retry, GivesTheSameTextAfterStepsThatWereBrokenOff) {
  for (const int num_drafts : {0, 3}) {
    SchedulerHarness harness({.max_step_tokens = 16, .num_drafts = num_drafts});
    std::vector<Request> requests{MakeRequest(30, 20, 1), MakeRequest(9, 12, 2)};
    std::vector<SequenceId> ids{harness.Add(requests[0]), harness.Add(requests[1])};
    for (int step = 0; harness.scheduler.has_work(); ++step) {
      ASSERT_LT(step, 1000);
      if (step % 3 == 1) {
        harness.scheduler.Retry(harness.scheduler.Schedule());
        harness.scheduler.CheckInvariants();
      } else {
        harness.Step();
      }
    }
    for (size_t i = 0; i < 2; ++i) harness.ExpectAsAlone(ids[i], requests[i]);
    EXPECT_EQ(harness.cache.num_free_blocks(), 64);
  }
}

// A stranger's long prompt beside streams: the chunk follows the measured time of the steps.
TEST(Pace, KeepsStepsWithStreamsNearTheTarget) {
  SchedulerHarness harness({.max_context_tokens = 4096, .num_cache_blocks = 2000},
                           {.pace = {.max_step_us = 50'000}});
  const auto step = [&harness] {
    const BatchPlan plan = harness.Step();
    int num_prompt = 0;
    for (const SequenceSlice& slice : plan.slices)
      num_prompt += slice.num_tokens > 1 ? slice.num_tokens : 0;
    const int64_t us = 10'000 + 400 * num_prompt;
    harness.scheduler.NoteStepTime(us);
    return us;
  };
  for (uint64_t i = 0; i < 8; ++i) harness.Add(FakePrompt(4, i), 200);
  for (int i = 0; i < 5; ++i) step();
  const SequenceId reader = harness.Add(FakePrompt(3000, 9), 1);
  int num_steps = 0;
  for (; harness.outcomes[reader].num_ends == 0; ++num_steps) EXPECT_LE(step(), 60'000);
  EXPECT_LE(num_steps, 40) << "3000 tokens at about 100 a step";
}

}  // namespace
}  // namespace hadal
