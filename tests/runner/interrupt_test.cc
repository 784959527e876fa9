// A step that is broken off leaves nothing behind: computed again, it gives the bits that it gives
// undisturbed.
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runner/model_runner.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

constexpr int kNumTokens = 160;

std::unique_ptr<ModelRunner> SmallRunner() {
  RunnerOptions options;
  options.model_path = GoldenModelPath("v3-f32");
  options.num_threads = 2;
  options.cache_tokens = 512;
  options.max_step_tokens = kNumTokens;
  return CreateRunner(options).value();
}

BatchPlan PromptPlan(const ModelRunner& runner) {
  BatchPlan plan;
  const int block_tokens = runner.info().block_tokens;
  const int num_blocks = (kNumTokens + block_tokens - 1) / block_tokens;
  plan.slices.push_back({.id = {0},
                         .num_tokens = kNumTokens,
                         .num_prompt_tokens = kNumTokens,
                         .num_blocks = num_blocks,
                         .wants_tokens = true});
  plan.slices[0].sampling.num_logprobs = 8;
  for (int block = 0; block < num_blocks; ++block) plan.block_ids.push_back({block});
  for (int i = 0; i < kNumTokens; ++i) plan.tokens.push_back({(5 + 7 * i) % 60});
  return plan;
}

std::vector<float> LogprobsOf(const StepResult& result) {
  std::vector<float> logprobs;
  for (const TokenLogprob& each : result.top_logprobs) logprobs.push_back(each.logprob);
  return logprobs;
}

TEST(Interrupt, LeavesNothingBehind) {
  StepResult expected;
  const std::unique_ptr<ModelRunner> undisturbed = SmallRunner();
  ASSERT_TRUE(undisturbed->Execute(PromptPlan(*undisturbed), &expected).ok());
  ASSERT_EQ(expected.top_logprobs.size(), 8u);

  const std::unique_ptr<ModelRunner> runner = SmallRunner();
  const BatchPlan plan = PromptPlan(*runner);
  StepResult result;
  runner->Interrupt();  // before it has begun
  EXPECT_EQ(runner->Execute(plan, &result).code(), StatusCode::kCancelled);
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * attempt));
      runner->Interrupt();
    });
    const Status status = runner->Execute(plan, &result);
    other.join();
    if (!status.ok()) {
      ASSERT_EQ(status.code(), StatusCode::kCancelled);
      continue;
    }
    ASSERT_EQ(LogprobsOf(result), LogprobsOf(expected)) << "attempt " << attempt;
    // It came after the step, so it meets the next one.
    ASSERT_EQ(runner->Execute(plan, &result).code(), StatusCode::kCancelled);
  }
  ASSERT_TRUE(runner->Execute(plan, &result).ok());
  EXPECT_EQ(LogprobsOf(result), LogprobsOf(expected));
  EXPECT_EQ(result.tokens[0].token, expected.tokens[0].token);
}

}  // namespace
}  // namespace hadal
