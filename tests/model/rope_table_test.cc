#include "model/rope_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "kernels/dispatch.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

ModelConfig YarnConfig(const Json& values) {
  ModelConfig config;
  config.qk_rope_head_dim = values["qk_rope_head_dim"];
  config.qk_nope_head_dim = static_cast<int>(values["qk_head_dim"]) - config.qk_rope_head_dim;
  config.rope_theta = values["rope_theta"];
  if (HasValue(values, "factor")) {
    config.rope_scaling = {
        .is_yarn = true,
        .factor = values["factor"],
        .original_max_position_embeddings = values["original_max_position_embeddings"],
        .beta_fast = values["beta_fast"],
        .beta_slow = values["beta_slow"],
        .mscale = values.value("mscale", 1.0),
        .mscale_all_dim = values.value("mscale_all_dim", 0.0)};
  }
  return config;
}

// Quality lost with length: frequencies, the multiplier of cos and sin, and the softmax scale of
// each family.
TEST(RopeTable, KeepsTheFrequenciesAndScalesOfEachFamily) {
  const Json cases = ReadGoldenJson("model/yarn_vectors.json")["cases"];
  ASSERT_GE(cases.size(), 2u);
  for (const Json& entry : cases) {
    const std::string name = entry["name"];
    const ModelConfig config = YarnConfig(entry["config"]);
    const RopeTable table(config);
    const Json& expected = entry["inv_freq"];
    ASSERT_EQ(table.inverse_frequencies().size(), expected.size()) << name;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double value = expected[i];
      EXPECT_NEAR(table.inverse_frequencies()[i], value, 1e-6 * value) << name << " pair " << i;
    }
    EXPECT_NEAR(table.amplitude(), entry["cos_sin_multiplier"].get<double>(), 1e-6) << name;
    const double scale = entry["softmax_scale"];
    EXPECT_NEAR(config.softmax_scale(), scale, 1e-6 * scale) << name;
    for (const Json& probe : entry.value("probe", Json::array())) {
      const int32_t position = probe["position"];
      std::vector<float> cos(expected.size()), sin(expected.size());
      const int pairs = static_cast<int>(expected.size());
      table.FillAngles({&position, 1}, {cos.data(), 1, pairs, pairs},
                       {sin.data(), 1, pairs, pairs});
      const size_t pair = probe["pair"];
      EXPECT_NEAR(cos[pair], probe["cos"].get<double>(), 1e-4) << name << " position " << position;
      EXPECT_NEAR(sin[pair], probe["sin"].get<double>(), 1e-4) << name << " position " << position;
    }
  }
}

TEST(RopeTable, AgreesWithTheSpecificationsExamples) {
  const Json examples = ReadGoldenJson("spec/model.json");
  const Json& inputs = examples["yarn_inv_freq"]["inputs"];
  ModelConfig config;
  config.qk_rope_head_dim = inputs["rope_dim"];
  config.qk_nope_head_dim = 128;
  config.rope_theta = inputs["theta"];
  config.rope_scaling = {
      .is_yarn = true,
      .factor = inputs["factor"],
      .original_max_position_embeddings = inputs["original_max_position_embeddings"],
      .beta_fast = inputs["beta_fast"],
      .beta_slow = inputs["beta_slow"],
      .mscale = 1.0,
      .mscale_all_dim = 1.0};
  const RopeTable table(config);
  const Json& frequencies = examples["yarn_inv_freq"]["expected"];
  ASSERT_EQ(table.inverse_frequencies().size(), 32u);
  EXPECT_GE(frequencies["inv_freq_yarn"].size(), 10u);
  for (const auto& [pair, value] : frequencies["inv_freq_yarn"].items()) {
    const double expected = value.get<double>();
    EXPECT_NEAR(table.inverse_frequencies()[std::stoul(pair)], expected, 1e-6 * expected) << pair;
  }
  double sum = 0;
  for (const double frequency : table.inverse_frequencies()) sum += frequency;
  EXPECT_NEAR(sum, frequencies["sum_of_all_32_yarn"].get<double>(), 1e-6);
  for (const Json& probe : examples["yarn_cos_sin"]["expected"]) {
    const int32_t position = probe["pos"];
    std::vector<float> cos(32), sin(32);
    table.FillAngles({&position, 1}, {cos.data(), 1, 32, 32}, {sin.data(), 1, 32, 32});
    const size_t pair = probe["pair"];
    EXPECT_NEAR(cos[pair], probe["cos"].get<double>(), 1e-6) << position << " " << pair;
    EXPECT_NEAR(sin[pair], probe["sin"].get<double>(), 1e-6) << position << " " << pair;
  }
}

ModelConfig ConfigOf(const std::string& name) {
  const Json vectors = ReadGoldenJson("model/yarn_vectors.json");
  for (const Json& entry : vectors["cases"]) {
    if (entry["name"].get<std::string>().starts_with(name)) return YarnConfig(entry["config"]);
  }
  ADD_FAILURE() << name;
  return {};
}

// C059: quality fell past the length of training, where other engines changed their frequencies.
TEST(RopeTable, HasTheSameAnglesInAShortAndInALongPrompt) {
  const RopeTable table(ConfigOf("V3"));
  std::vector<int32_t> positions(10000);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i);
  constexpr int kPairs = 32, kShort = 10, kLong = 10000;
  std::vector<float> cos(kLong * kPairs), sin(kLong * kPairs);
  table.FillAngles(positions, {cos.data(), kLong, kPairs, kPairs},
                   {sin.data(), kLong, kPairs, kPairs});
  std::vector<float> short_cos(kShort * kPairs), short_sin(kShort * kPairs);
  table.FillAngles({positions.data(), kShort}, {short_cos.data(), kShort, kPairs, kPairs},
                   {short_sin.data(), kShort, kPairs, kPairs});
  EXPECT_TRUE(std::equal(short_cos.begin(), short_cos.end(), cos.begin()));
  EXPECT_TRUE(std::equal(short_sin.begin(), short_sin.end(), sin.begin()));
}

// C061: all positions were scrambled though nothing crashed. The first pair turns by one radian a
// position and stays a neighbouring pair.
TEST(RopeTable, TurnsTheFirstUnitVectorByItsPosition) {
  const RopeTable table(ConfigOf("V3"));
  constexpr int kPairs = 32;
  const int32_t position = 1;
  std::vector<float> cos(kPairs), sin(kPairs), x(2 * kPairs);
  table.FillAngles({&position, 1}, {cos.data(), 1, kPairs, kPairs},
                   {sin.data(), 1, kPairs, kPairs});
  for (const KernelTable* kernels : UsableKernels()) {
    std::ranges::fill(x, 0.0f);
    x[0] = 1;
    kernels->rope_interleaved(x.data(), cos.data(), sin.data(), 2 * kPairs);
    EXPECT_NEAR(x[0], 0.540302, 1e-6);
    EXPECT_NEAR(x[1], 0.841471, 1e-6);
    EXPECT_TRUE(std::all_of(x.begin() + 2, x.end(), [](float value) { return value == 0; }));
  }
}

}  // namespace
}  // namespace hadal
