#include "apps/speed_forecast.h"

#include <gtest/gtest.h>

#include "apps/released_models.h"
#include "base/json.h"
#include "convert/model_shapes.h"
#include "model/imagined_weights.h"

namespace hadal {
namespace {

// Two cores of Zen 3 (docs/performance.md).
constexpr MachineLimits kMachine{.kernels = "avx2",
                                 .read_bytes_per_s = 32.0e9,
                                 .multiply_add_ops_per_s = 186e9,
                                 .integer_ops_per_s = 553e9};

// The same at another hour.
constexpr MachineLimits kQuieterMachine{.kernels = "avx2",
                                        .read_bytes_per_s = 34.0e9,
                                        .multiply_add_ops_per_s = 207e9,
                                        .integer_ops_per_s = 662e9};

// Two cores of Zen 5.
constexpr MachineLimits kAvx512Machine{.kernels = "avx512",
                                       .read_bytes_per_s = 60.0e9,
                                       .multiply_add_ops_per_s = 225e9,
                                       .integer_ops_per_s = 1880e9};

// The measured checkpoint had all its four-bit weights in groups of 32.
ModelWeights WeightsInGroupsOf32(const ModelConfig& config) {
  ModelWeights weights = ImagineWeights(config, QuantFormat::kInt4Group);
  const auto narrow = [](QuantizedMatrix* matrix) {
    if (matrix->format == QuantFormat::kInt4Group) matrix->group_size = 32;
  };
  for (LayerWeights& layer : weights.layers) {
    FeedForwardWeights& mixture = layer.feed_forward;
    for (QuantizedMatrix* matrix : {&mixture.gate, &mixture.up, &mixture.down}) narrow(matrix);
    for (auto* experts : {&mixture.expert_gate, &mixture.expert_up, &mixture.expert_down}) {
      for (QuantizedMatrix& matrix : *experts) narrow(&matrix);
    }
  }
  return weights;
}

class SpeedForecastTest : public testing::Test {
 protected:
  const ModelConfig config_ = ModelConfig::Parse(ReadModelShape("v2-lite").value(), "x").value();
  const ModelWeights weights_ = WeightsInGroupsOf32(config_);
  const ForecastModel model_{config_, weights_, CacheType::kBF16, true};
};

// What `bench` measured of this shape on that machine.
TEST_F(SpeedForecastTest, IsWithinAFifthOfWhatWasMeasured) {
  for (const SpeedForecast& forecast :
       {ForecastPrefill(model_, kMachine, 512, 0, 512), ForecastDecode(model_, kMachine, 1, 0),
        ForecastDecode(model_, kMachine, 32, 0)}) {
    RecordProperty(forecast.what + std::to_string(forecast.batch),
                   std::to_string(forecast.tokens_per_s));
  }
  EXPECT_NEAR(ForecastDecode(model_, kMachine, 1, 0).tokens_per_s / 16.6, 1, 0.2);
  EXPECT_NEAR(ForecastDecode(model_, kMachine, 32, 0).tokens_per_s / 45.3, 1, 0.2);
  EXPECT_NEAR(ForecastPrefill(model_, kMachine, 512, 0, 512).tokens_per_s / 69.9, 1, 0.2);
  EXPECT_NEAR(ForecastDecode(model_, kQuieterMachine, 1, 8192).seconds / 0.108, 1, 0.2);
  EXPECT_NEAR(ForecastPrefill(model_, kQuieterMachine, 512, 8192, 512).tokens_per_s / 31.0, 1, 0.2);
}

TEST_F(SpeedForecastTest, IsWithinAFifthOfWhatWasMeasuredWithAvx512) {
  ForecastModel model = model_;
  model.cache_type = CacheType::kQ16;
  EXPECT_NEAR(ForecastDecode(model, kAvx512Machine, 1, 0).tokens_per_s / 27.5, 1, 0.2);
  EXPECT_NEAR(ForecastDecode(model, kAvx512Machine, 32, 0).tokens_per_s / 96.1, 1, 0.2);
  EXPECT_NEAR(ForecastPrefill(model, kAvx512Machine, 512, 0, 512).tokens_per_s / 180.4, 1, 0.2);
  EXPECT_NEAR(ForecastDecode(model, kAvx512Machine, 1, 8192).seconds / 0.055, 1, 0.2);
  EXPECT_NEAR(ForecastPrefill(model, kAvx512Machine, 512, 8192, 512).tokens_per_s / 78, 1, 0.2);
  EXPECT_NEAR(ForecastPrefill(model, kAvx512Machine, 1024, 8192, 1024).tokens_per_s / 90.5, 1, 0.2);
}

TEST_F(SpeedForecastTest, NamesWhatLimits) {
  EXPECT_EQ(ForecastDecode(model_, kMachine, 1, 0).bound_by, "reading");
  EXPECT_EQ(ForecastPrefill(model_, kMachine, 512, 0, 512).bound_by, "arithmetic");
  EXPECT_EQ(ForecastPrefill(model_, kMachine, 512, 100'000, 512).bound_by, "attention");
}

TEST_F(SpeedForecastTest, ALongPromptIsReadInSteps) {
  const SpeedForecast first = ForecastPrefill(model_, kMachine, 512, 0, 512);
  const SpeedForecast second = ForecastPrefill(model_, kMachine, 512, 512, 512);
  const SpeedForecast both = ForecastPrefill(model_, kMachine, 1024, 0, 512);
  // The logits of the first step are not computed.
  EXPECT_NEAR(both.seconds, first.seconds + second.seconds, 0.02 * both.seconds);
  EXPECT_LT(both.seconds, first.seconds + second.seconds);
  EXPECT_EQ(both.tokens, 1024);
}

TEST_F(SpeedForecastTest, AFasterMachineIsFaster) {
  MachineLimits twice = kMachine;
  twice.read_bytes_per_s *= 2;
  EXPECT_GT(ForecastDecode(model_, twice, 1, 0).tokens_per_s,
            1.3 * ForecastDecode(model_, kMachine, 1, 0).tokens_per_s);
}

TEST(ReleasedModels, AreFoundByTheirNames) {
  for (const char* name : {"deepseek-ai/DeepSeek-R1-0528", "DeepSeek-R1-0528", "r1-0528"}) {
    const ReleasedModel* model = FindReleasedModel(name);
    ASSERT_NE(model, nullptr) << name;
    EXPECT_STREQ(model->repo, "deepseek-ai/DeepSeek-R1-0528");
  }
  EXPECT_EQ(FindReleasedModel("other-ai/DeepSeek-R1"), nullptr);
  EXPECT_EQ(FindReleasedModel(""), nullptr);
}

TEST(ReleasedModels, HaveShapesThatExist) {
  for (const ReleasedModel& model : ReleasedModels()) {
    EXPECT_TRUE(ReadModelShape(model.shape).ok()) << model.repo;
    EXPECT_EQ(FindReleasedModel(model.repo), &model);
  }
}

}  // namespace
}  // namespace hadal
