// The specification's worked examples of single operations, on every usable kernel set.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "kernels/dispatch.h"
#include "tensor/scalar.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

std::vector<float> RmsNorm(const KernelTable& kernels, const std::vector<float>& x,
                           const std::vector<float>& gain) {
  std::vector<float> out(x.size());
  kernels.rms_norm(x.data(), gain.data(), static_cast<int>(x.size()), 1e-6f, out.data());
  return out;
}

TEST(SpecExamples, RmsNorm) {
  const Json examples = ReadGoldenJson("spec/elementwise.json");
  for (const KernelTable* kernels : UsableKernels()) {
    const Json& plain = examples.at("rmsnorm");
    const std::vector<float> y = RmsNorm(*kernels, plain["inputs"]["x"].get<std::vector<float>>(),
                                         plain["inputs"]["w"].get<std::vector<float>>());
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(y[i], plain["expected"]["y_float64"][i].get<double>(), 1e-6) << kernels->name;
    }
    // Of the two published roundings ours is the one that rounds once.
    const Json& rounded = examples.at("rmsnorm_rounding");
    const std::vector<float> z = RmsNorm(*kernels, rounded["inputs"]["x"].get<std::vector<float>>(),
                                         rounded["inputs"]["w"].get<std::vector<float>>());
    for (size_t i = 0; i < z.size(); ++i) {
      EXPECT_EQ(Bf16ToFloat(FloatToBf16(z[i])),
                rounded["expected"]["fp32_weight_multiply_then_one_rounding"][i].get<float>())
          << kernels->name;
    }
  }
}

TEST(SpecExamples, RopeInBothLayouts) {
  const Json example = ReadGoldenJson("spec/elementwise.json").at("rope_layout");
  const Json& inputs = example["inputs"];
  const Json& expected = example["expected"];
  const auto frequencies = inputs["inv_freq"].get<std::vector<double>>();
  for (const KernelTable* kernels : UsableKernels()) {
    for (const std::string which : {"query", "key"}) {
      const double position = inputs["pos_" + which];
      std::vector<float> cos, sin;
      for (const double frequency : frequencies) {
        cos.push_back(static_cast<float>(std::cos(position * frequency)));
        sin.push_back(static_cast<float>(std::sin(position * frequency)));
      }
      const auto x = inputs["x_" + which].get<std::vector<float>>();
      std::vector<float> interleaved = x;
      kernels->rope_interleaved(interleaved.data(), cos.data(), sin.data(), 4);
      std::vector<float> halves = {x[0], x[2], x[1], x[3]};
      kernels->rope_half_split(halves.data(), cos.data(), sin.data(), 4);
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(interleaved[i], expected[which + "_interleaved"][i].get<double>(), 1e-6)
            << kernels->name;
        EXPECT_NEAR(halves[i], expected[which + "_deinterleaved_then_half"][i].get<double>(), 1e-6)
            << kernels->name;
      }
    }
  }
}

}  // namespace
}  // namespace hadal
