// Sequences that end before, at and after the edges of cache blocks (64 positions) and of the spans
// over which attention sums, read in pieces of any size.
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/model_under_test.h"

namespace hadal {
namespace {

// Small enough that the naive model reads 1800 tokens in a second.
Json NarrowConfig(ModelFamily family) {
  Json config = SmallConfig(family);
  config.update({{"hidden_size", 32},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", 1},
                 {"kv_lora_rank", 32},
                 {"n_routed_experts", 4},
                 {"num_experts_per_tok", 1},
                 {"n_group", 1},
                 {"topk_group", 1},
                 {"vocab_size", 32}});
  return config;
}

NaiveMatrix FirstRows(const NaiveMatrix& matrix, int rows) {
  NaiveMatrix first(std::min(rows, matrix.rows), matrix.cols);
  std::copy_n(matrix.values.begin(), first.values.size(), first.values.begin());
  return first;
}

// Attention is causal, so the logits of a prefix are the first rows of the whole.
ClearSequence Prefix(const ClearSequence& whole, int length) {
  ClearSequence prefix;
  prefix.tokens.assign(whole.tokens.begin(), whole.tokens.begin() + length);
  prefix.expected.logits = FirstRows(whole.expected.logits, length);
  prefix.expected.mtp_logits = FirstRows(whole.expected.mtp_logits, length - 1);
  return prefix;
}

class LongSequence : public testing::TestWithParam<ModelFamily> {};

// C062.
TEST_P(LongSequence, StaysRightWhenTheCachePassesOneBlock) {
  const ModelUnderTest model(NarrowConfig(GetParam()), {});
  ASSERT_TRUE(model.is_sound());
  const ClearSequence whole = model.DrawSequence(1153);
  for (const int length :
       {1, 63, 64, 65, 127, 128, 129, 511, 512, 513, 575, 576, 577, 1151, 1152, 1153}) {
    ExpectAgreement(model, Prefix(whole, length), AllWays({length}));
  }
  ExpectAgreement(model, whole, AllWays({1, 65, 1152}));
}

// C063.
TEST_P(LongSequence, IsTheSameWhenThePromptIsSplitOverSeveralPasses) {
  const ModelUnderTest model(NarrowConfig(GetParam()), {});
  ASSERT_TRUE(model.is_sound());
  const ClearSequence whole = model.DrawSequence(1800);
  ExpectAgreement(model, whole, AllWays({1, 7, 64, 512, 1799, 1800}));
}

INSTANTIATE_TEST_SUITE_P(Families, LongSequence,
                         testing::Values(ModelFamily::kV2Lite, ModelFamily::kV3),
                         [](const testing::TestParamInfo<ModelFamily>& it) {
                           return it.param == ModelFamily::kV3 ? "V3" : "V2Lite";
                         });

}  // namespace
}  // namespace hadal
