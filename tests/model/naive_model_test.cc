// The naive model against the logits that a float64 reference computed, so that it can serve as the
// truth for models of any size; and its gates against the specification's worked numbers.
#include "tests/model/naive_model.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/naive_gate.h"
#include "tests/support/files.h"
#include "tests/support/random_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensor_values.h"

namespace hadal {
namespace {

// Largest difference in a row as a share of the row's largest expected value; of `expected` every
// `step`-th row of `found` is kept.
double WorstRow(const NaiveMatrix& found, const std::vector<double>& expected, int step) {
  const size_t cols = static_cast<size_t>(found.cols);
  EXPECT_EQ(expected.size(), cols * ((found.rows + step - 1) / step));
  double worst = 0;
  for (size_t r = 0; r * cols < expected.size(); ++r) {
    double size = 0, difference = 0;
    for (size_t j = 0; j < cols; ++j) {
      const double e = expected[r * cols + j];
      size = std::max(size, std::abs(e));
      difference = std::max(difference, std::abs(e - found.row(static_cast<int>(r) * step)[j]));
    }
    worst = std::max(worst, difference / size);
  }
  return worst;
}

class NaiveModelOnGolden : public testing::TestWithParam<const char*> {};

TEST_P(NaiveModelOnGolden, GivesTheReferencesLogits) {
  const std::string folder = std::string("models/") + GetParam();
  const Json sequences = ReadGoldenJson(folder + "/expected.json")["sequences"];
  const auto answers = Checkpoint::Open(GoldenPath(folder + "/expected.safetensors"));
  ASSERT_TRUE(answers.ok()) << answers.status().message();
  const auto checkpoint = Checkpoint::Open(GoldenPath(folder + "/model"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const Result<NaiveModel> model = NaiveModel::Load(**checkpoint);
  ASSERT_TRUE(model.ok()) << model.status().message();

  for (const char* name : {"one", "five", "chunk", "long"}) {
    SCOPED_TRACE(name);
    const int step = std::string(name) == "long" ? 4 : 1;
    const NaiveOutput out = model->Run(sequences[name].get<std::vector<int>>());
    const auto logits = ReadTensorValues(**answers, std::string(name) + ".logits");
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    EXPECT_LT(WorstRow(out.logits, logits.value(), step), 1e-6);
    const auto mtp = ReadTensorValues(**answers, std::string(name) + ".mtp_logits");
    if (mtp.ok() || out.mtp_logits.rows > 0) {
      ASSERT_TRUE(mtp.ok()) << mtp.status().message();
      EXPECT_LT(WorstRow(out.mtp_logits, mtp.value(), step), 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllFamilies, NaiveModelOnGolden,
                         testing::Values("v2-lite-f32", "v2-lite-bf16", "v2-group-f16", "v3-f32",
                                         "v3-bf16-plain-rope", "v3-fp8", "v32-f32",
                                         "v32-fp8-ue8m0"));

ModelConfig GateConfig(int experts, int groups, int kept, int chosen, double scale) {
  ModelConfig config;
  config.n_routed_experts = experts;
  config.n_group = groups;
  config.topk_group = kept;
  config.num_experts_per_tok = chosen;
  config.routed_scaling_factor = scale;
  config.norm_topk_prob = true;
  config.topk_method = TopkMethod::kNoauxTc;
  return config;
}

void ExpectExperts(const std::vector<NaiveExpertWeight>& found, const std::vector<int>& experts,
                   const std::vector<double>& weights) {
  ASSERT_EQ(found.size(), experts.size());
  for (size_t i = 0; i < experts.size(); ++i) {
    EXPECT_EQ(found[i].expert, experts[i]);
    EXPECT_NEAR(found[i].weight, weights[i], 1e-8);
  }
}

// Specification, section 11, numbers 5 and 6.
TEST(NaiveGate, GivesTheWorkedNumbersOfTheSpecification) {
  double clearest = 1;
  ExpectExperts(NaiveV3Gate(GateConfig(12, 4, 2, 3, 2.5),
                            {-.5, -.8, -.6, -1.2, 1.7, -1.7, -1.3, -.9, .7, 1.8, -.7, -1.2},
                            {-.15, .3, .55, -.1, .55, -.3, .35, .55, .5, .7, -.15, .1}, &clearest),
                {9, 8, 7}, {1.18177121237, 0.920172526362, 0.39805626127});
  const std::vector<double> logits = {1, .5, -.5, 2, 0, 1.5, -1, .25};
  ModelConfig v2 = GateConfig(8, 4, 2, 3, 16);
  v2.norm_topk_prob = false;
  v2.topk_method = TopkMethod::kGroupLimitedGreedy;
  ExpectExperts(NaiveV2Gate(v2, logits, &clearest), {3, 5, 4},
                {6.06400200576, 3.67800313705, 0.820673428996});
  v2.topk_method = TopkMethod::kGreedy;
  v2.routed_scaling_factor = 1;
  ExpectExperts(NaiveV2Gate(v2, logits, &clearest), {3, 5, 0},
                {0.37900012536, 0.229875196066, 0.139426354321});
}

TEST(NaiveGate, TellsHowCloseTheClosestChoiceWas) {
  double clearest = 1;
  NaiveV3Gate(GateConfig(4, 1, 1, 1, 1), {0, 0, -5, -5}, {0.25, 0.125, 0, 0}, &clearest);
  EXPECT_NEAR(clearest, 0.125, 1e-12);
  NaiveIndexScores scores(3);
  scores.values = {4, 1, 2};
  EXPECT_EQ(scores.Best(2, &clearest), (std::vector<int>{0, 2}));
  EXPECT_NEAR(clearest, 0.125, 1e-12);
  scores.values = {4, 3.9, 2};
  EXPECT_EQ(scores.Best(1, &clearest), std::vector<int>{0});
  EXPECT_NEAR(clearest, 0.025, 1e-12);
}

TEST(RandomModel, HasLogitsOfTheOrderOfOneInEveryFamilyAndStorage) {
  for (const ModelFamily family :
       {ModelFamily::kV2Lite, ModelFamily::kV2, ModelFamily::kV3, ModelFamily::kV32}) {
    for (const WeightStorage storage :
         {WeightStorage::kF32, WeightStorage::kBF16, WeightStorage::kF16, WeightStorage::kFp8,
          WeightStorage::kFp8PowersOfTwo}) {
      const TempDir dir;
      const Status written =
          WriteRandomModel(SmallConfig(family), {.storage = storage, .num_shards = 2}, dir.path());
      ASSERT_TRUE(written.ok()) << written.message();
      const auto checkpoint = Checkpoint::Open(dir.path());
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
      const Result<NaiveModel> model = NaiveModel::Load(**checkpoint);
      ASSERT_TRUE(model.ok()) << model.status().message();
      const NaiveOutput out = model->Run(std::vector<int>{5, 127, 0, 99, 5, 5});
      EXPECT_EQ(out.mtp_logits.rows,
                family == ModelFamily::kV3 || family == ModelFamily::kV32 ? 5 : 0);
      double square = 0;
      for (const double v : out.logits.values) square += v * v / 6 / 128;
      EXPECT_GT(std::sqrt(square), 0.3);  // 6 tokens, 128 words
      EXPECT_LT(std::sqrt(square), 3.0);
    }
  }
}

}  // namespace
}  // namespace hadal
