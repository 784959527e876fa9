// Nothing allocates in a decode step after warm-up: not the runner's part of it.
#include <string>

#include <gtest/gtest.h>

#include "runner/model_runner.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

// Two sequences of which each gets one token more, drawn with penalties and logprobs.
BatchPlan DecodePlan(int position, int vocab_size) {
  BatchPlan plan;
  for (int s = 0; s < 2; ++s) {
    SequenceSlice slice;
    slice.id = {s};
    slice.token_begin = s;
    slice.num_tokens = 1;
    slice.num_cached = position;
    slice.num_prompt_tokens = 4;
    slice.block_begin = 2 * s;
    slice.num_blocks = 2;
    slice.wants_tokens = true;
    slice.num_history = position;
    slice.sampling.temperature = 0.7f;
    slice.sampling.top_p = 0.9f;
    slice.sampling.repetition_penalty = 1.1f;
    slice.sampling.num_logprobs = 3;
    plan.slices.push_back(slice);
    plan.tokens.push_back({(7 * position + s) % vocab_size});
    plan.block_ids.push_back({2 * s});
    plan.block_ids.push_back({2 * s + 1});
  }
  for (int i = 0; i < position; ++i) plan.history.push_back({i % vocab_size});
  return plan;
}

TEST(Allocation, ADecodeStepAllocatesNothingAfterWarmUp) {
  for (const std::string& name : GoldenModelNames()) {
    auto runner =
        CreateRunner({.model_path = GoldenModelPath(name), .num_threads = 2, .cache_tokens = 1024});
    ASSERT_TRUE(runner.ok()) << runner.status().message();
    const int vocab_size = runner.value()->info().vocab_size;
    StepResult result;
    // The first position past index_topk of the sparse models lies in the warm-up.
    for (int position = 0; position < 72; ++position) {
      ASSERT_TRUE(runner.value()->Execute(DecodePlan(position, vocab_size), &result).ok());
      ASSERT_EQ(result.tokens.size(), 2u);
    }
    for (int position = 72; position < 100; ++position) {
      const BatchPlan plan = DecodePlan(position, vocab_size);
      const AllocGuard guard;
      ASSERT_TRUE(runner.value()->Execute(plan, &result).ok());
      EXPECT_EQ(guard.count(), 0) << name << " at position " << position;
    }
  }
}

TEST(Allocation, TheGuardSeesAnAllocation) {
  const AllocGuard guard;
  auto made = std::make_unique<std::string>(100, 'x');
  EXPECT_GT(guard.count(), 0);
  EXPECT_EQ(made->size(), 100u);
}

}  // namespace
}  // namespace hadal
