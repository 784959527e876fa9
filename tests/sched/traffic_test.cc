// Random traffic against the scheduler: a fake clock counts steps, a fake runner checks every row
// it reads. No request starves, nothing leaks, each request ends exactly once with the text it
// would have had alone.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"

namespace hadal {
namespace {

constexpr int64_t kAgingUs = 500'000;

// What a step costs on the fake machine.
int64_t StepUs(const BatchPlan& plan) {
  return 2'000 + 300 * static_cast<int64_t>(plan.tokens.size());
}

class Traffic {
 public:
  Traffic(const FakeRunnerOptions& options, const SchedulerLimits& limits, uint32_t seed)
      : harness_(options, limits), random_(seed) {
    // A few stems, so that prompts share prefixes.
    for (uint64_t i = 0; i < 4; ++i) stems_.push_back(FakePrompt(24, i));
  }

  // Runs `num_steps` steps of traffic, then until nobody is left.
  void Run(int num_steps) {
    for (int step = 0; step < num_steps || harness_.scheduler.has_work(); ++step) {
      ASSERT_LT(step, num_steps + 20000) << "no end in sight";
      if (step < num_steps) Arrive();
      if (Chance(3)) Cancel();
      harness_.Expire(now_us_);
      if (!harness_.scheduler.has_work()) {
        now_us_ += 1000;
        continue;
      }
      if (Chance(4)) {
        harness_.scheduler.Retry(ScheduleAndMove());
        continue;
      }
      const BatchPlan plan = harness_.Step();
      CheckOrder(plan);
      now_us_ += StepUs(plan);
      harness_.scheduler.NoteStepTime(StepUs(plan));
      if (testing::Test::HasFailure()) return;
    }
    CheckAll();
  }

  int64_t num_preemptions() const { return harness_.scheduler.num_preemptions(); }
  int64_t num_saves() const { return harness_.scheduler.num_saves(); }
  int num_expired() const { return num_expired_; }
  int num_cached_tokens() const { return num_cached_tokens_; }

 private:
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

  // A step that is broken off has moved its rows.
  const BatchPlan& ScheduleAndMove() {
    const BatchPlan& plan = harness_.scheduler.Schedule();
    harness_.MoveRows(plan);
    CheckOrder(plan);
    return plan;
  }

  void Arrive() {
    if (!Chance(35)) return;
    Request request;
    request.prompt = stems_[random_() % stems_.size()];
    request.prompt.resize(1 + random_() % request.prompt.size());
    for (const TokenId token : FakePrompt(Below(6), random_())) request.prompt.push_back(token);
    request.max_tokens = Chance(10) ? -1 : 1 + Below(30);
    request.stop_tokens = {TokenId{3}, TokenId{4}};
    request.priority = Below(3);
    request.sampling.temperature = Chance(50) ? 1.0f : 0.0f;
    request.sampling.seed = random_();
    request.sampling.frequency_penalty = Chance(30) ? 1.0f : 0.0f;
    request.arrival_us = now_us_;
    if (Chance(10)) request.deadline_us = now_us_ + Below(3'000'000);
    if (Chance(5)) request.sampling.num_logprobs = 2;
    if (Chance(20) && !requests_.empty() && harness_.outcomes[last_].num_ends == 0) {
      request.prompt = requests_[last_].prompt;
      request.priority = requests_[last_].priority;
      request.prompt_leader = last_;
      requests_[harness_.Add(request)] = request;
      return;
    }
    last_ = harness_.Add(request);
    requests_[last_] = request;
  }

  void Cancel() {
    if (requests_.empty()) return;
    auto place = requests_.begin();
    std::advance(place, Below(static_cast<int>(requests_.size())));
    if (harness_.outcomes[place->first].num_ends == 0) harness_.Cancel(place->first);
  }

  void CheckOrder(const BatchPlan& plan) {
    for (const SequenceSlice& slice : plan.slices) {
      ASSERT_TRUE(requests_.contains(slice.id));
      ASSERT_EQ(slice.num_prompt_tokens, static_cast<int>(requests_[slice.id].prompt.size()))
          << "recomputed tokens keep their form";
      if (started_.insert(slice.id).second) CheckNobodyWasOvertaken(slice.id);
    }
  }

  static int64_t DueUs(const Request& request) {
    return request.arrival_us + request.priority * kAgingUs;
  }

  // Nobody who was due before `id` may still wait for a first step, those who wait for their
  // sibling to read the prompt aside. So nobody starves: who is overtaken is overtaken by those
  // only that came before it was due.
  void CheckNobodyWasOvertaken(SequenceId id) {
    for (const auto& [other, request] : requests_) {
      if (DueUs(request) > DueUs(requests_[id]) || other >= id) continue;
      const bool waits = !started_.contains(other) && harness_.outcomes[other].num_ends == 0;
      EXPECT_FALSE(waits && request.prompt_leader == SequenceId{})
          << other.value << " was overtaken by " << id.value;
    }
  }

  void CheckAll() {
    for (const auto& [id, request] : requests_) {
      const SchedulerHarness::Outcome& outcome = harness_.outcomes[id];
      ASSERT_EQ(outcome.num_ends, 1);
      num_cached_tokens_ += outcome.num_cached_tokens;
      EXPECT_LT(outcome.num_cached_tokens, static_cast<int>(request.prompt.size()));
      if (outcome.finish == FinishReason::kError) {
        EXPECT_NE(request.deadline_us, 0);
        ++num_expired_;
      }
      if (outcome.finish != FinishReason::kCancelled && outcome.finish != FinishReason::kError) {
        harness_.ExpectAsAlone(id, request);
        continue;
      }
      const std::vector<TokenId> expected = harness_.runner.Expected(
          request.prompt, request.sampling, static_cast<int>(outcome.output.size()), {});
      EXPECT_EQ(outcome.output, expected);
    }
    EXPECT_EQ(harness_.cache.num_free_blocks(), harness_.cache.geometry().num_blocks);
    EXPECT_TRUE(harness_.saved.empty()) << "rows of someone who has ended";
  }

  SchedulerHarness harness_;
  std::mt19937 random_;
  std::vector<std::vector<TokenId>> stems_;
  std::map<SequenceId, Request> requests_;
  std::set<SequenceId> started_;
  SequenceId last_;
  int64_t now_us_ = 0;
  int num_cached_tokens_ = 0, num_expired_ = 0;
};

struct Scarcity {
  std::string name;
  FakeRunnerOptions options;
  bool must_preempt = false;
  int max_saved_blocks = 0;
  int64_t max_step_us = 0;
};

class TrafficTest : public testing::TestWithParam<Scarcity> {};

TEST_P(TrafficTest, EndsEachRequestOnceWithItsOwnText) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SchedulerLimits limits;
  limits.aging_us = kAgingUs;
  limits.max_saved_blocks = GetParam().max_saved_blocks;
  limits.pace.max_step_us = GetParam().max_step_us;
  Traffic traffic(GetParam().options, limits, seed);
  traffic.Run(600);
  EXPECT_GT(traffic.num_cached_tokens(), 0);
  if (GetParam().must_preempt) {
    EXPECT_GT(traffic.num_preemptions(), 0);
    EXPECT_EQ(traffic.num_saves() > 0, GetParam().max_saved_blocks > 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    With, TrafficTest,
    testing::Values(
        Scarcity{"PlentyOfRoom", {.max_context_tokens = 64}},
        Scarcity{"FewBlocks", {.max_context_tokens = 64, .num_cache_blocks = 20}, true},
        Scarcity{"SavedRows", {.max_context_tokens = 64, .num_cache_blocks = 20}, true, 40},
        Scarcity{"LittleRoomToSave", {.max_context_tokens = 64, .num_cache_blocks = 20}, true, 9},
        Scarcity{"Paced",
                 {.max_context_tokens = 64, .num_cache_blocks = 40},
                 /*must_preempt=*/false,
                 /*max_saved_blocks=*/20,
                 /*max_step_us=*/9'000},
        Scarcity{"FewOfEverything",
                 {.max_context_tokens = 64,
                  .num_cache_blocks = 16,
                  .max_step_tokens = 9,
                  .max_step_sequences = 5},
                 true},
        Scarcity{"DraftsAndSavedRows",
                 {.max_context_tokens = 64,
                  .num_cache_blocks = 24,
                  .max_step_tokens = 16,
                  .num_drafts = 3},
                 true,
                 12},
        Scarcity{"OneTokenPerStep", {.max_context_tokens = 64, .max_step_tokens = 1}},
        Scarcity{"OneForm",
                 {.max_context_tokens = 64,
                  .num_cache_blocks = 22,
                  .max_step_tokens = 32,
                  .has_one_form = true,
                  .num_drafts = 2},
                 true,
                 30}),
    [](const testing::TestParamInfo<Scarcity>& scarcity) { return scarcity.param.name; });

}  // namespace
}  // namespace hadal
