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

class Traffic {
 public:
  Traffic(const FakeRunnerOptions& options, uint32_t seed) : harness_(options), random_(seed) {
    // A few stems, so that prompts share prefixes.
    for (uint64_t i = 0; i < 4; ++i) stems_.push_back(FakePrompt(24, i));
  }

  // Runs `num_steps` steps of traffic, then until nobody is left.
  void Run(int num_steps) {
    for (clock_ = 0; clock_ < num_steps || harness_.scheduler.has_work(); ++clock_) {
      ASSERT_LT(clock_, num_steps + 20000) << "no end in sight";
      if (clock_ < num_steps) Arrive();
      if (!harness_.scheduler.has_work()) continue;
      if (Chance(3)) Cancel();
      if (!harness_.scheduler.has_work()) continue;
      CheckOrder(harness_.Step());
      if (testing::Test::HasFailure()) return;
    }
    CheckAll();
  }

  int64_t num_preemptions() const { return harness_.scheduler.num_preemptions(); }
  int num_cached_tokens() const { return num_cached_tokens_; }

 private:
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

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
    auto place = requests_.begin();
    std::advance(place, Below(static_cast<int>(requests_.size())));
    if (harness_.outcomes[place->first].num_ends > 0) return;
    harness_.scheduler.Finish(place->first);
    harness_.scheduler.CheckInvariants();
    ++harness_.outcomes[place->first].num_ends;
    harness_.outcomes[place->first].finish = FinishReason::kCancelled;
  }

  void CheckOrder(const BatchPlan& plan) {
    for (const SequenceSlice& slice : plan.slices) {
      ASSERT_TRUE(requests_.contains(slice.id));
      ASSERT_EQ(slice.num_prompt_tokens, static_cast<int>(requests_[slice.id].prompt.size()))
          << "recomputed tokens keep their form";
      if (started_.insert(slice.id).second) CheckNobodyWasOvertaken(slice.id);
    }
  }

  // Nobody of the same priority who came before `id` may still wait for a first step, those who
  // wait for their sibling to read the prompt aside. So nobody starves.
  void CheckNobodyWasOvertaken(SequenceId id) {
    for (const auto& [other, request] : requests_) {
      if (other >= id || request.priority != requests_[id].priority) continue;
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
      if (outcome.finish != FinishReason::kCancelled) {
        harness_.ExpectAsAlone(id, request);
        continue;
      }
      const std::vector<TokenId> expected = harness_.runner.Expected(
          request.prompt, request.sampling, static_cast<int>(outcome.output.size()), {});
      EXPECT_EQ(outcome.output, expected);
    }
    EXPECT_EQ(harness_.cache.num_free_blocks(), harness_.cache.geometry().num_blocks);
  }

  SchedulerHarness harness_;
  std::mt19937 random_;
  std::vector<std::vector<TokenId>> stems_;
  std::map<SequenceId, Request> requests_;
  std::set<SequenceId> started_;
  SequenceId last_;
  int clock_ = 0;
  int num_cached_tokens_ = 0;
};

struct Scarcity {
  std::string name;
  FakeRunnerOptions options;
  bool must_preempt = false;
};

class TrafficTest : public testing::TestWithParam<Scarcity> {};

TEST_P(TrafficTest, EndsEachRequestOnceWithItsOwnText) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Traffic traffic(GetParam().options, seed);
  traffic.Run(400);
  EXPECT_GT(traffic.num_cached_tokens(), 0);
  if (GetParam().must_preempt) {
    EXPECT_GT(traffic.num_preemptions(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    With, TrafficTest,
    testing::Values(Scarcity{"PlentyOfRoom", {.max_context_tokens = 64}},
                    Scarcity{"FewBlocks", {.max_context_tokens = 64, .num_cache_blocks = 20}, true},
                    Scarcity{"FewOfEverything",
                             {.max_context_tokens = 64,
                              .num_cache_blocks = 16,
                              .max_step_tokens = 9,
                              .max_step_sequences = 5},
                             true},
                    Scarcity{"Drafts",
                             {.max_context_tokens = 64,
                              .num_cache_blocks = 24,
                              .max_step_tokens = 16,
                              .num_drafts = 3},
                             true},
                    Scarcity{"OneTokenPerStep", {.max_context_tokens = 64, .max_step_tokens = 1}},
                    Scarcity{"OneForm",
                             {.max_context_tokens = 64,
                              .num_cache_blocks = 22,
                              .max_step_tokens = 32,
                              .has_one_form = true,
                              .num_drafts = 2},
                             true}),
    [](const testing::TestParamInfo<Scarcity>& scarcity) { return scarcity.param.name; });

}  // namespace
}  // namespace hadal
