// What lies in scratch and cache beside a step's own rows must not reach its results.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "runner/batch_builder.h"
#include "runner/loaded_model.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

constexpr int kMaxSequences = 9, kPromptTokens = 20;

void FillWithNan(FloatMatrix matrix) {
  for (int r = 0; r < matrix.rows; ++r) {
    std::ranges::fill(matrix.row(r), std::numeric_limits<float>::quiet_NaN());
  }
}

// A model whose scratch and cache hold nothing but NaN.
Result<LoadedModel> LoadPoisoned(const std::string& name) {
  RunnerOptions options;
  options.model_path = GoldenModelPath(name);
  options.num_threads = 2;
  options.cache_tokens = kMaxSequences * 64;
  options.max_step_tokens = kMaxSequences * kPromptTokens + 7;
  options.max_step_sequences = kMaxSequences;
  ASSIGN_OR_RETURN(LoadedModel loaded, LoadedModel::Load(options, {.max_logit_rows = 16}));
  Activations& a = loaded.activations;
  for (const FloatMatrix& matrix :
       {a.hidden, a.normed, a.query_latent, a.queries, a.latents, a.attended, a.gated, a.mixed,
        a.router_scores, a.expert_weights, a.index_queries, a.index_keys, a.index_weights, a.cos,
        a.sin, a.index_cos, a.index_sin, a.logit_inputs, a.logits}) {
    FillWithNan(matrix);
  }
  for (int layer = 0; layer < loaded.model->config().num_hidden_layers; ++layer) {
    const CacheRows rows = loaded.cache.latents(layer);  // kF32
    FillWithNan({reinterpret_cast<float*>(rows.data), rows.rows, rows.cols, rows.cols});
  }
  return loaded;
}

// The last logits of `num_sequences` prompts that share one step, each in its own block.
std::vector<std::vector<float>> LastLogits(LoadedModel* loaded, int num_sequences,
                                           int first_sequence) {
  BatchPlan plan;
  for (int s = 0; s < num_sequences; ++s) {
    const int sequence = first_sequence + s;
    plan.slices.push_back({.id = {sequence},
                           .token_begin = static_cast<int>(plan.tokens.size()),
                           .num_tokens = kPromptTokens,
                           .num_prompt_tokens = kPromptTokens,
                           .block_begin = s,
                           .num_blocks = 1,
                           .wants_tokens = true});
    plan.block_ids.push_back({sequence});
    for (int i = 0; i < kPromptTokens; ++i) plan.tokens.push_back({(5 * i + 13 * sequence) % 90});
  }
  BatchBuilder builder(loaded->model->config(), AttentionForm::kAuto,
                       kMaxSequences * kPromptTokens + 7, kMaxSequences);
  const ForwardBatch batch = builder.Build(plan);
  loaded->model->Forward(batch, &loaded->cache, &loaded->activations);
  loaded->model->ComputeLogits(builder.logit_rows(), &loaded->activations);
  EXPECT_TRUE(loaded->backend->Synchronize().ok());
  std::vector<std::vector<float>> logits;
  for (int s = 0; s < num_sequences; ++s) {
    const auto row = loaded->activations.logits.row(s);
    logits.emplace_back(row.begin(), row.end());
  }
  return logits;
}

// C089: every reply was NaN once three sequences shared a step. C090: a row of nothing but masked
// keys gave NaN.
TEST(Padding, OfNanReachesNoRowOfABatchOfOneToNine) {
  for (const char* name : {"v2-lite-f32", "v3-fp8", "v32-f32"}) {
    std::vector<std::vector<float>> alone;
    for (int s = 0; s < kMaxSequences; ++s) {
      Result<LoadedModel> loaded = LoadPoisoned(name);
      ASSERT_TRUE(loaded.ok()) << loaded.status().message();
      alone.push_back(LastLogits(&*loaded, 1, s)[0]);
      ASSERT_TRUE(std::ranges::all_of(alone.back(), [](float x) { return std::isfinite(x); }));
    }
    for (int count = 2; count <= kMaxSequences; ++count) {
      Result<LoadedModel> loaded = LoadPoisoned(name);
      ASSERT_TRUE(loaded.ok()) << loaded.status().message();
      const auto together = LastLogits(&*loaded, count, 0);
      for (int s = 0; s < count; ++s) {
        EXPECT_TRUE(together[static_cast<size_t>(s)] == alone[static_cast<size_t>(s)])
            << name << ", row " << s << " of " << count;
      }
    }
  }
}

}  // namespace
}  // namespace hadal
