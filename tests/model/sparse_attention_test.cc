// The positions that V3.2's indexer picks. Specification, section 6.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/model_under_test.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

constexpr int kTopk = 8;  // of SmallConfig

Json WithLayout(bool is_interleaved) {
  Json config = SmallConfig(ModelFamily::kV32);
  config["indexer_rope_interleave"] = is_interleaved;
  return config;
}

// C068. Every layer chooses anew, in one pass: C070, where scores of one layer stayed in the mask
// of the next, would show here too.
TEST(SparseAttention, IndexPicksTheRightKeysForBothRotaryLayouts) {
  std::vector<std::vector<NaiveSelection>> selections;
  for (const bool is_interleaved : {false, true}) {
    const ModelUnderTest model(WithLayout(is_interleaved), {});
    ASSERT_TRUE(model.is_sound());
    const ClearSequence sequence = model.DrawSequence(40);
    selections.push_back(sequence.expected.selections);
    ExpectAgreement(model, sequence, AllWays({1, 7, 40}));
  }
  EXPECT_NE(selections[0], selections[1]) << "the test could not tell the layouts apart";
}

TEST(SparseAttention, ShortPromptsDoNotChangeWhenTheIndexIsSwitchedOn) {
  Json dense_config = SmallConfig(ModelFamily::kV3);  // the same weights, but for the indexer's
  const ModelUnderTest dense(dense_config, {}), sparse(WithLayout(false), {});
  ASSERT_TRUE(dense.is_sound() && sparse.is_sound());
  for (const int length : {kTopk - 1, kTopk}) {
    const ClearSequence sequence = dense.DrawSequence(length);
    ExpectAgreement(sparse, sequence, AllWays({1, length}));
  }
}

TEST(SparseAttention, OneTokenMoreThanTopkDropsExactlyOneKey) {
  const ModelUnderTest sparse(WithLayout(false), {});
  ASSERT_TRUE(sparse.is_sound());
  const ClearSequence sequence = sparse.DrawSequence(kTopk + 1);
  for (const NaiveSelection& layer : sequence.expected.selections) {
    EXPECT_EQ(layer.back().size(), static_cast<size_t>(kTopk));
  }
  ExpectAgreement(sparse, sequence, AllWays({1, kTopk, kTopk + 1}));
}

TEST(SparseAttention, OddSizesOfTheIndexer) {
  const std::vector<Json> sizes = {
      {{"index_n_heads", 1}, {"index_head_dim", 32}, {"index_topk", 8}},
      {{"index_n_heads", 3}, {"index_head_dim", 96}, {"index_topk", 5}},
      {{"index_n_heads", 5}, {"index_head_dim", 160}, {"index_topk", 1}},
      {{"index_n_heads", 64}, {"index_head_dim", 128}, {"index_topk", 13}}};
  for (const Json& size : sizes) {
    SCOPED_TRACE(DumpJson(size));
    Json config = WithLayout(false);
    config.update(size);
    const ModelUnderTest model(config, {});
    ASSERT_TRUE(model.is_sound());
    ExpectAgreement(model, model.DrawSequence(40), AllWays({1, 7, 40}));
  }
}

TEST(SparseAttention, PicksAcrossCacheBlocksAndSpans) {
  Json config = WithLayout(false);
  config.update(
      {{"num_hidden_layers", 1}, {"first_k_dense_replace", 1}, {"num_nextn_predict_layers", 0}});
  const ModelUnderTest model(config, {});
  ASSERT_TRUE(model.is_sound());
  const ClearSequence sequence = model.DrawSequence(577);
  ExpectAgreement(model, sequence, AllWays({64, 100, 577}));
}

// Own rule of the specification, 6.3: the lower position.
TEST(SparseAttention, TiesGoToTheLowerPosition) {
  const auto all_equal = [](std::string_view name, std::span<float> values) {
    if (name.ends_with("indexer.wq_b.weight")) std::ranges::fill(values, 0.0f);
  };
  const ModelUnderTest model(WithLayout(false), {.edit = all_equal});
  ASSERT_TRUE(model.is_sound());
  std::vector<int> words(70);
  for (int i = 0; i < 70; ++i) words[i] = i * 37 % 128;
  ClearSequence sequence{TokenList(words), model.naive().Run(words)};
  EXPECT_EQ(sequence.expected.selections[0].back(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  ExpectAgreement(model, sequence, AllWays({1, 7, 70}));
}

}  // namespace
}  // namespace hadal
