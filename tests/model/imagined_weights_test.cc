#include "model/imagined_weights.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "convert/model_shapes.h"
#include "convert/synthesize.h"
#include "model/parameter_count.h"
#include "model/step_cost.h"
#include "model/weight_formats.h"

namespace hadal {
namespace {

ModelConfig ConfigOf(const std::string& shape) {
  return ModelConfig::Parse(ReadModelShape(shape).value(), shape).value();
}

// A checkpoint also has vectors, which no step cost counts: less than a thousandth.
TEST(ImaginedWeights, TakeTheBytesOfACheckpointOfThatShapeAndFormat) {
  for (const std::string& shape : ModelShapeNames()) {
    for (const QuantFormat format : {QuantFormat::kBF16, QuantFormat::kF8Block128,
                                     QuantFormat::kInt8Group, QuantFormat::kInt4Group}) {
      const SynthOptions options{.shape = shape,
                                 .has_mtp = false,
                                 .format = format,
                                 .group_size = DefaultGroupSize(format)};
      const auto expected = static_cast<double>(SynthWeightBytes(options).value());
      const auto found = static_cast<double>(WeightBytes(ImagineWeights(ConfigOf(shape), format)));
      EXPECT_LE(found, expected) << shape << " " << static_cast<int>(format);
      EXPECT_GE(found, 0.999 * expected) << shape << " " << static_cast<int>(format);
    }
  }
}

// Two operations for each active parameter of a token, but none for looking up its embedding.
TEST(ImaginedWeights, CostATokenWhatItsParametersCost) {
  for (const std::string& shape : ModelShapeNames()) {
    const ModelConfig config = ConfigOf(shape);
    const StepCost cost = CostOfStep(config, ImagineWeights(config, QuantFormat::kBF16),
                                     {.num_cached = 1000, .cache_row_bytes = 1});
    const auto expected =
        2.0 * static_cast<double>(CountParameters(config).active_without_embedding());
    EXPECT_NEAR(static_cast<double>(cost.weight_ops) / expected, 1.0, 1e-3) << shape;
  }
}

}  // namespace
}  // namespace hadal
