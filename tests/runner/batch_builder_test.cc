#include "runner/batch_builder.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/latent_cache.h"

namespace hadal {
namespace {

using testing::ElementsAre;

// A prompt's piece that ends its prompt, and a sequence that decodes with two drafts.
BatchPlan TwoSequences() {
  BatchPlan plan;
  plan.tokens = {{10}, {11}, {12}, {20}, {21}, {22}};
  plan.block_ids = {{7}, {3}, {5}};
  plan.slices.push_back({.id = {0},
                         .token_begin = 0,
                         .num_tokens = 3,
                         .num_cached = kBlockTokens - 1,
                         .num_prompt_tokens = kBlockTokens + 2,
                         .block_begin = 0,
                         .num_blocks = 2,
                         .wants_tokens = true});
  plan.slices.push_back({.id = {1},
                         .token_begin = 3,
                         .num_tokens = 3,
                         .num_cached = 4,
                         .num_prompt_tokens = 2,
                         .num_drafts = 2,
                         .block_begin = 2,
                         .num_blocks = 1,
                         .wants_tokens = true});
  return plan;
}

TEST(BatchBuilder, PutsEachTokenIntoTheSlotOfItsPosition) {
  BatchBuilder builder(ModelConfig(), AttentionForm::kAuto, 16, 4);
  const ForwardBatch batch = builder.Build(TwoSequences());
  constexpr int kB = kBlockTokens;
  EXPECT_THAT(batch.tokens, ElementsAre(10, 11, 12, 20, 21, 22));
  EXPECT_THAT(batch.positions, ElementsAre(kB - 1, kB, kB + 1, 4, 5, 6));
  EXPECT_THAT(batch.slots,
              ElementsAre(7 * kB + kB - 1, 3 * kB, 3 * kB + 1, 5 * kB + 4, 5 * kB + 5, 5 * kB + 6));
  EXPECT_THAT(builder.logit_rows(), ElementsAre(2, 3, 4, 5)) << "the last row, and one per draft";
}

TEST(BatchBuilder, NeedsNoLogitsOfAPromptThatIsPartlyRead) {
  BatchBuilder builder(ModelConfig(), AttentionForm::kAuto, 16, 4);
  BatchPlan plan = TwoSequences();
  plan.slices[0].wants_tokens = plan.slices[1].wants_tokens = false;
  builder.Build(plan);
  EXPECT_TRUE(builder.logit_rows().empty());
}

TEST(BatchBuilder, ChoosesTheFormByWhatATokenIs) {
  BatchPlan plan = TwoSequences();
  plan.slices[0].num_prompt_tokens = kBlockTokens;  // only the first of its tokens is prompt
  for (const AttentionForm form :
       {AttentionForm::kAuto, AttentionForm::kAbsorbed, AttentionForm::kExpanded}) {
    BatchBuilder builder(ModelConfig(), form, 16, 4);
    const ForwardBatch batch = builder.Build(plan);
    int covered = 0;
    for (const AttentionRange& range : batch.ranges) {
      EXPECT_EQ(range.token_begin, covered);
      EXPECT_FALSE(range.is_sparse);
      covered += range.num_tokens;
      const bool is_prompt = range.token_begin == 0;
      EXPECT_EQ(range.is_absorbed,
                form == AttentionForm::kAbsorbed || (form == AttentionForm::kAuto && !is_prompt));
    }
    EXPECT_EQ(covered, batch.num_tokens());
    EXPECT_EQ(batch.ranges[0].num_tokens, 1);
  }
}

// C069: what a query sees up to index_topk positions is everything.
TEST(BatchBuilder, SelectsFromTheFirstPositionThatSeesMoreThanTopk) {
  ModelConfig config;
  config.index_n_heads = config.index_head_dim = 1;
  config.index_topk = 6;
  BatchBuilder builder(config, AttentionForm::kAuto, 16, 4);
  BatchPlan plan = TwoSequences();
  plan.slices.erase(plan.slices.begin());
  plan.slices[0].num_prompt_tokens = 7;
  const ForwardBatch batch = builder.Build(plan);  // positions 4, 5 and 6
  ASSERT_EQ(batch.ranges.size(), 2u);
  EXPECT_TRUE(batch.has_sparse_range);
  EXPECT_FALSE(batch.ranges[0].is_sparse);
  EXPECT_EQ(batch.ranges[0].num_tokens, 2);
  EXPECT_TRUE(batch.ranges[1].is_sparse);
  EXPECT_TRUE(batch.ranges[1].is_absorbed) << "a selection is gathered, whatever the token is";
  EXPECT_EQ(batch.ranges[1].first_position, 6);
}

}  // namespace
}  // namespace hadal
