// What a step says that it had to read.
#include <gtest/gtest.h>

#include "model/step_cost.h"
#include "runner/loaded_model.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

constexpr int kNumTokens = 3;

BatchPlan PlanOf(int num_tokens) {
  BatchPlan plan;
  plan.slices.push_back({.id = {0},
                         .num_tokens = num_tokens,
                         .num_prompt_tokens = num_tokens,
                         .num_blocks = 1,
                         .wants_tokens = true});
  plan.block_ids.push_back({0});
  for (int i = 0; i < num_tokens; ++i) plan.tokens.push_back({5 + 7 * i});
  return plan;
}

RunnerOptions SmallModel() {
  RunnerOptions options;
  options.model_path = GoldenModelPath("v3-f32");
  options.num_threads = 2;
  options.cache_tokens = 256;
  return options;
}

TEST(Traffic, OfOneTokenIsItsExpertsAndEverythingElseOnce) {
  const LoadedModel loaded = LoadedModel::Load(SmallModel(), {.max_logit_rows = 1}).value();
  const ModelConfig& config = loaded.model->config();
  const StepCost cost =
      CostOfStep(config, loaded.model->weights(), {.cache_row_bytes = 4 * config.latent_dim()});
  const std::unique_ptr<ModelRunner> runner = CreateRunner(SmallModel()).value();
  EXPECT_TRUE(runner->ExpertImbalance().empty());
  StepResult result;
  ASSERT_TRUE(runner->Execute(PlanOf(1), &result).ok());
  EXPECT_EQ(result.traffic.weight_bytes, cost.weight_bytes);
  EXPECT_EQ(result.traffic.cache_bytes, cost.cache_bytes);

  int num_layers_with_experts = 0;
  for (const LayerWeights& layer : loaded.model->weights().layers)
    num_layers_with_experts += layer.feed_forward.expert_gate.empty() ? 0 : 1;
  const std::vector<LayerImbalance> layers = runner->ExpertImbalance();
  ASSERT_EQ(static_cast<int>(layers.size()), num_layers_with_experts);
  for (const LayerImbalance& layer : layers)
    EXPECT_DOUBLE_EQ(layer.ratio, double(config.n_routed_experts) / config.num_experts_per_tok);
}

TEST(Traffic, OfSeveralTokensReadsEachExpertOnce) {
  const LoadedModel loaded = LoadedModel::Load(SmallModel(), {.max_logit_rows = 1}).value();
  const ModelConfig& config = loaded.model->config();
  const ReadCost cost = CountReadCost(loaded.model->weights(), 4 * config.latent_dim());
  const std::unique_ptr<ModelRunner> runner = CreateRunner(SmallModel()).value();
  StepResult one, several;
  ASSERT_TRUE(runner->Execute(PlanOf(1), &one).ok());
  ASSERT_TRUE(runner->Execute(PlanOf(kNumTokens), &several).ok());
  const int64_t reads_of_one = (one.traffic.weight_bytes - cost.step_bytes) / cost.expert_bytes;
  const int64_t reads = (several.traffic.weight_bytes - cost.step_bytes) / cost.expert_bytes;
  EXPECT_GT(reads, reads_of_one);
  EXPECT_LE(reads, kNumTokens * reads_of_one);
  EXPECT_EQ(several.traffic.cache_bytes, kNumTokens * one.traffic.cache_bytes);
}

}  // namespace
}  // namespace hadal
