#include "tensor/group_quantize.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tensor/scalar.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

TEST(GroupQuantize, AgreesWithTheSpecificationsGroups) {
  const Json examples = ReadGoldenJson("spec/quantized.json");
  for (const bool is_symmetric : {false, true}) {
    const Json& example = examples.at(is_symmetric ? "group_sym_int4" : "group_asym_int4");
    const Json& expected = example["expected"];
    const auto x = example["inputs"]["x"].get<std::vector<double>>();
    const QuantizedGroup group =
        is_symmetric ? QuantizeSymmetricInt4(x) : QuantizeAsymmetricInt4(x);
    EXPECT_NEAR(group.scale, expected["scale"].get<double>(), 1e-7);
    EXPECT_EQ(group.zero_point, expected.value("zero_point", 0));
    EXPECT_EQ(group.codes, expected["q"].get<std::vector<int>>());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(group.value(i), expected["dequant"][i].get<double>(), 1e-6);
  }
}

TEST(GroupQuantize, RoundsActivationsAsTheReferenceDoes) {
  const Json example = ReadGoldenJson("spec/quantized.json").at("act_quant");
  const auto x = example["inputs"]["x"].get<std::vector<float>>();
  for (const auto& [key, kind] : {std::pair("float_scale", ActivationScale::kFloat),
                                  std::pair("ue8m0_scale", ActivationScale::kPowerOfTwo)}) {
    const Json& expected = example["expected"][key];
    const QuantizedActivations group = QuantizeActivationsE4m3(x, kind);
    EXPECT_NEAR(group.scale, expected["scale"].get<double>(), 1e-9) << key;
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(group.codes[i], std::stoi(expected["codes"][i].get<std::string>(), nullptr, 16))
          << key << " " << i;
      EXPECT_NEAR(E4m3ToFloat(group.codes[i]) * group.scale, expected["decoded"][i].get<double>(),
                  1e-6)
          << key;
    }
  }
}

// Blocks that have given not-a-number elsewhere: all zero, tiny, all equal, one large.
// C085: blocks of nearly equal or tiny values became NaN.
TEST(GroupQuantize, StaysFiniteOnDegenerateGroups) {
  const std::vector<std::vector<float>> groups = {std::vector<float>(32, 0.0f),
                                                  std::vector<float>(32, 1e-30f),
                                                  std::vector<float>(32, -3.0f), [] {
                                                    std::vector<float> one(32, 0.0f);
                                                    one[5] = 1e5f;
                                                    return one;
                                                  }()};
  for (const std::vector<float>& x : groups) {
    const std::vector<double> wide(x.begin(), x.end());
    for (const QuantizedGroup& group :
         {QuantizeAsymmetricInt4(wide), QuantizeSymmetricInt4(wide)}) {
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(std::isfinite(group.value(i)));
        EXPECT_LE(std::fabs(group.value(i) - x[i]), 0.51 * group.scale);
      }
    }
    EXPECT_TRUE(std::isfinite(QuantizeActivationsE4m3(x, ActivationScale::kFloat).scale));
  }
}

TEST(GroupQuantize, HadamardIsOrthonormalInSylvestersOrder) {
  const Json example = ReadGoldenJson("spec/quantized.json").at("hadamard4");
  const auto x = example["inputs"]["x"].get<std::vector<float>>();
  std::vector<float> y = x;
  HadamardTransform(y);
  EXPECT_EQ(y, example["expected"].get<std::vector<float>>());
  HadamardTransform(y);
  EXPECT_EQ(y, x);
}

}  // namespace
}  // namespace hadal
