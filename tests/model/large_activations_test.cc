// Activations far beyond 16-bit floats: everything stays finite and right, since sums and norms are
// in 32 bits.
#include <string>

#include <gtest/gtest.h>

#include "tests/model/model_under_test.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

struct Stored {
  std::string name;
  WeightStorage storage;
};

class LargeActivations : public testing::TestWithParam<Stored> {};

TEST_P(LargeActivations, HiddenStateOf90000InOneChannelDoesNotOverflow) {
  const auto large_channel = [](std::string_view name, std::span<float> values) {
    if (name != "model.layers.0.mlp.down_proj.weight") return;
    const size_t width = values.size() / 64;  // [hidden_size 64, width]
    for (size_t i = 0; i < width; ++i) values[3 * width + i] *= 9e4f;
  };
  const ModelUnderTest model(SmallConfig(ModelFamily::kV3),
                             {.storage = GetParam().storage, .edit = large_channel});
  ASSERT_TRUE(model.is_sound());
  ExpectAgreement(model, model.DrawSequence(20), AllWays({1, 20}));
}

// Rows of more than 1e5 with sums past 65504 go through the gate, up and down products of the dense
// layer, the experts and the shared expert.
TEST_P(LargeActivations, RowsOf100000AreNotNaNInAnyProduct) {
  const auto large_rows = [](std::string_view name, std::span<float> values) {
    if (name.ends_with("post_attention_layernorm.weight")) {
      for (float& value : values) value *= 4e4f;
    }
    if (name.ends_with("mlp.gate.weight")) {  // the choice stays as it was
      for (float& value : values) value *= 1.0f / 4e4f;
    }
  };
  Json config = SmallConfig(ModelFamily::kV3);
  config.update({{"num_hidden_layers", 2}, {"moe_intermediate_size", 96}});
  const ModelUnderTest model(config, {.storage = GetParam().storage, .edit = large_rows});
  ASSERT_TRUE(model.is_sound());
  ExpectAgreement(model, model.DrawSequence(20), AllWays({1, 20}));
}

TEST_P(LargeActivations, WordOfZerosIsNotNaN) {
  const auto zeros = [](std::string_view name, std::span<float> values) {
    if (!name.ends_with("embed_tokens.weight")) return;
    std::ranges::fill(values.first(64), 0.0f);
  };
  const ModelUnderTest model(SmallConfig(ModelFamily::kV2),
                             {.storage = GetParam().storage, .edit = zeros});
  ASSERT_TRUE(model.is_sound());
  const std::vector<int> words = {0, 0, 5, 0, 9};
  ClearSequence sequence{TokenList(words), model.naive().Run(words)};
  ExpectAgreement(model, sequence, AllWays({1, 5}));
}

INSTANTIATE_TEST_SUITE_P(Storages, LargeActivations,
                         testing::Values(Stored{"F32", WeightStorage::kF32},
                                         Stored{"BF16", WeightStorage::kBF16},
                                         Stored{"F16", WeightStorage::kF16},
                                         Stored{"FP8", WeightStorage::kFp8}),
                         [](const testing::TestParamInfo<Stored>& it) { return it.param.name; });

}  // namespace
}  // namespace hadal
