// Which experts a token gets, and what becomes of them: cases that went wrong elsewhere.
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "base/random.h"
#include "kernels/dispatch.h"
#include "model/expert_router.h"
#include "tensor/scalar.h"
#include "tests/model/model_under_test.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

using testing::HasSubstr;

// One mixture of `num_experts` over one-hot words: word e is routed to expert e, whose output is
// (e + 1) times that of expert 0. Channel 0 of every word is 1; experts write into channel 1.
class OneHotMixture {
 public:
  static constexpr int kExperts = 30, kHidden = 64, kFirstWord = 2;

  static Json Config() {
    Json config = SmallConfig(ModelFamily::kV3);
    config.update({{"num_hidden_layers", 1},
                   {"num_nextn_predict_layers", 0},
                   {"first_k_dense_replace", 0},
                   {"hidden_size", kHidden},
                   {"n_routed_experts", kExperts},
                   {"num_experts_per_tok", 1},
                   {"n_group", 1},
                   {"topk_group", 1},
                   {"n_shared_experts", 0},
                   {"routed_scaling_factor", 1.0},
                   {"vocab_size", kHidden}});
    return config;
  }

  static void Edit(std::string_view name, std::span<float> values) {
    const bool is_norm = name.find("norm") != name.npos;
    std::ranges::fill(values, is_norm ? 1.0f : 0.0f);  // attention adds nothing
    if (name == "model.embed_tokens.weight") {
      for (int word = 0; word < kHidden; ++word) {
        values[word * kHidden] = 1.0f;
        if (word >= kFirstWord) values[word * kHidden + word] = 1.0f;
      }
    } else if (name.ends_with("mlp.gate.weight")) {
      for (int e = 0; e < kExperts; ++e) values[e * kHidden + kFirstWord + e] = 1.0f;
    } else if (name.ends_with("up_proj.weight") || name.ends_with("gate_proj.weight")) {
      values[0] = 1.0f;
    } else if (name.find("experts.") != name.npos) {  // down_proj [hidden, width]: channel 1
      const size_t at = name.find("experts.") + 8;
      const int expert = std::stoi(std::string(name.substr(at)));
      values[values.size() / kHidden] = static_cast<float>(expert + 1);
    } else if (name == "lm_head.weight") {  // logit 0 is channel 0, logit 1 is channel 1
      values[0] = values[kHidden + 1] = 1.0f;
    }
  }
};

TEST(ExpertChoice, OutputShowsWhichExpertWorked) {
  for (const WeightStorage storage :
       {WeightStorage::kF32, WeightStorage::kBF16, WeightStorage::kF16, WeightStorage::kFp8}) {
    const ModelUnderTest model(OneHotMixture::Config(),
                               {.storage = storage, .edit = OneHotMixture::Edit});
    ASSERT_TRUE(model.is_sound());
    std::vector<TokenId> tokens;
    for (int e = OneHotMixture::kExperts - 1; e >= 0; --e) {
      tokens.push_back({OneHotMixture::kFirstWord + e});
    }
    // x = word / rms(word), so channel 0 of x is r below; an expert gives (e + 1) silu(r) r.
    const double r = std::sqrt(OneHotMixture::kHidden / 2.0);
    const double one = r / (1 + std::exp(-r)) * r;
    for (const Way& way : AllWays({1, 30})) {
      const AllLogits found = ComputeLogits(OptionsOf(model, way), tokens);
      ASSERT_EQ(found.main.num_rows, static_cast<int>(tokens.size()));
      for (size_t i = 0; i < tokens.size(); ++i) {
        const float* row = found.main.row(static_cast<int>(i));
        const int expert = tokens[i].value - OneHotMixture::kFirstWord;
        EXPECT_NEAR(row[1] / row[0] / one, expert + 1, 1e-3) << way.kernels << " " << way.chunk;
      }
    }
  }
}

TEST(ExpertChoice, FileShortOfOneExpertIsRefusedByName) {
  const TempDir dir;
  const std::string last = "model.layers.0.mlp.experts.29.down_proj.weight";
  const Status written =
      WriteRandomModel(OneHotMixture::Config(), {.left_out = {last}}, dir.path());
  ASSERT_TRUE(written.ok()) << written.message();
  RunnerOptions options;
  options.model_path = dir.path();
  const auto runner = LogitsRunner::Create(options, 8);
  ASSERT_FALSE(runner.ok());
  EXPECT_EQ(runner.status().code(), StatusCode::kCorrupt);
  EXPECT_THAT(runner.status().message(), HasSubstr(last));
}

// C075.
TEST(ExpertChoice, ThirtyThreeTokensThatAllChooseTheSameSix) {
  Json config = SmallConfig(ModelFamily::kV2Lite);
  config.update({{"n_routed_experts", 64}, {"num_experts_per_tok", 6}});
  const ModelUnderTest model(config, {});
  ASSERT_TRUE(model.is_sound());
  // Equal words have equal values, so attention gives all positions the same.
  ExpectAgreement(model, model.MakeSequence(std::vector<int>(33, 7)), AllWays({1, 7, 33}));
}

// C078: routing flipped on close scores where the gate did not run on its own weights as they are
// stored. The same gate in a file of FP8 experts and in one of float32.
TEST(ExpertChoice, GateRunsOnItsOwnWeightsAsTheyAreStored) {
  constexpr int kTokens = 200, kHidden = 160, kExperts = 32;
  std::vector<uint16_t> stored(kExperts * kHidden);
  std::vector<float> same(stored.size()), x(kTokens * kHidden);
  for (size_t i = 0; i < stored.size(); ++i) {
    stored[i] = FloatToBf16(static_cast<float>(RandomUnit(3, i) - 0.5));
    same[i] = Bf16ToFloat(stored[i]);
  }
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(RandomUnit(4, i) - 0.5);
  const auto backend = std::move(CreateBackend({.num_threads = 2, .kernels = ""})).value();
  ModelConfig config;
  config.n_routed_experts = kExperts;
  config.num_experts_per_tok = 6;
  ExpertRouter router(config);
  const auto choose = [&](QuantFormat format, const void* data) {
    std::vector<float> logits(kTokens * kExperts), weights(6);
    std::vector<int32_t> all, ids(6);
    const QuantizedMatrix gate = {.format = format,
                                  .rows = kExperts,
                                  .cols = kHidden,
                                  .data = static_cast<const std::byte*>(data)};
    backend->MatMul(FloatMatrix{x.data(), kTokens, kHidden, kHidden}, gate,
                    {logits.data(), kTokens, kExperts, kExperts});
    for (int t = 0; t < kTokens; ++t) {
      router.Route({logits.data() + t * kExperts, kExperts}, {}, ids, weights);
      all.insert(all.end(), ids.begin(), ids.end());
    }
    return all;
  };
  EXPECT_EQ(choose(QuantFormat::kBF16, stored.data()), choose(QuantFormat::kF32, same.data()));
}

// The tie rule of the specification, section 4: the lower index, of groups and of experts.
TEST(ExpertChoice, TiesGoToTheLowerIndex) {
  for (const ModelFamily family : {ModelFamily::kV2Lite, ModelFamily::kV2, ModelFamily::kV3}) {
    const auto all_equal = [](std::string_view name, std::span<float> values) {
      if (name.find("mlp.gate.") != name.npos) std::ranges::fill(values, 0.0f);
    };
    const ModelUnderTest model(SmallConfig(family), {.edit = all_equal});
    ASSERT_TRUE(model.is_sound());
    const std::vector<int> words = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    ClearSequence sequence{TokenList(words), model.naive().Run(words)};
    EXPECT_EQ(sequence.expected.clearest_choice_at_least, 0.0);
    ExpectAgreement(model, sequence, AllWays({1, 9}));
  }
}

}  // namespace
}  // namespace hadal
