#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/dispatch.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/guarded.h"

namespace hadal::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kSizes[] = {1, 2, 7, 8, 9, 15, 16, 31, 33, 200, 576, 1408};

class Elementwise : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& kernels() const { return *GetParam(); }
  const KernelTable& reference() const { return *UsableKernels().front(); }
  Guarded<float> Floats(int size, float spread = 1.0f) {
    return RandomFloats(size, &random_, spread);
  }
  static Guarded<float> Copy(const Guarded<float>& from) {
    Guarded<float> copy(from.size());
    std::copy(from.begin(), from.end(), copy.data());
    return copy;
  }
  Random random_{17};
};

TEST_P(Elementwise, RmsNormFollowsItsFormula) {
  for (int size : kSizes) {
    const Guarded<float> x = Floats(size, 3.0f), gain = Floats(size);
    Guarded<float> out(size), expected(size);
    kernels().rms_norm(x.data(), gain.data(), size, 1e-6f, out.data());
    reference().rms_norm(x.data(), gain.data(), size, 1e-6f, expected.data());
    EXPECT_TRUE(SameBits(out.data(), expected.data(), size)) << size;
    double squares = 0;
    for (float v : x) squares += double{v} * v;
    for (int i = 0; i < size; ++i) {
      const double exact = x[i] / std::sqrt(squares / size + 1e-6) * gain[i];
      ASSERT_NEAR(out[i], exact, std::abs(exact) * (size / 8 + 8) * 0x1p-24) << size;
    }
    kernels().rms_norm(out.data(), gain.data(), size, 1e-6f, out.data());  // in place
    reference().rms_norm(expected.data(), gain.data(), size, 1e-6f, expected.data());
    EXPECT_TRUE(SameBits(out.data(), expected.data(), size)) << size;
  }
}

// Case C088: a channel of 9e4 among small ones.
TEST_P(Elementwise, RmsNormStaysFiniteForOneHugeChannel) {
  Guarded<float> x = Floats(7168), gain = Floats(7168), out(7168);
  x[99] = 9e4f;
  kernels().rms_norm(x.data(), gain.data(), 7168, 1e-6f, out.data());
  for (float v : out) ASSERT_TRUE(std::isfinite(v));
  EXPECT_NEAR(out[99] / gain[99], std::sqrt(7168.0), 1e-3);
}

TEST_P(Elementwise, LayerNormFollowsItsFormula) {
  for (int size : kSizes) {
    Guarded<float> x = Floats(size, 2.0f);
    const Guarded<float> gain = Floats(size), bias = Floats(size);
    for (float& v : x) v += 5.0f;
    Guarded<float> out(size), expected(size);
    kernels().layer_norm(x.data(), gain.data(), bias.data(), size, 1e-6f, out.data());
    reference().layer_norm(x.data(), gain.data(), bias.data(), size, 1e-6f, expected.data());
    EXPECT_TRUE(SameBits(out.data(), expected.data(), size)) << size;
    double mean = 0, variance = 0;
    for (float v : x) mean += v;
    mean /= size;
    for (float v : x) variance += (v - mean) * (v - mean);
    const double root = std::sqrt(variance / size + 1e-6);
    for (int i = 0; i < size && size > 1; ++i) {
      const double exact = (x[i] - mean) / root * gain[i] + bias[i];
      ASSERT_NEAR(out[i], exact, 2e-5) << size;
    }
    if (size == 1) {
      EXPECT_EQ(out[0], bias[0]);
    }
  }
}

TEST_P(Elementwise, SiluMulFollowsItsFormulaAndMayWriteOverItsInputs) {
  for (int size : kSizes) {
    const Guarded<float> gate = Floats(size, 10.0f), up = Floats(size);
    Guarded<float> out(size), expected(size);
    kernels().silu_mul(gate.data(), up.data(), size, out.data());
    reference().silu_mul(gate.data(), up.data(), size, expected.data());
    EXPECT_TRUE(SameBits(out.data(), expected.data(), size)) << size;
    for (int i = 0; i < size; ++i) {
      const double exact = gate[i] / (1 + std::exp(-double{gate[i]})) * up[i];
      ASSERT_NEAR(out[i], exact, std::abs(exact) * 8 * 0x1p-24 + 1e-44) << gate[i];
    }
    const Guarded<float> over_gate = Copy(gate), over_up = Copy(up);
    kernels().silu_mul(over_gate.data(), up.data(), size, over_gate.data());
    kernels().silu_mul(gate.data(), over_up.data(), size, over_up.data());
    EXPECT_TRUE(SameBits(over_gate.data(), expected.data(), size)) << size;
    EXPECT_TRUE(SameBits(over_up.data(), expected.data(), size)) << size;
  }
}

TEST_P(Elementwise, SiluOfEveryFiniteInputIsFinite) {
  const std::vector<float> gates = {0.0f,    -0.0f, 1e-45f, -1e-45f, 88.0f,  -88.0f, -104.0f,
                                    -200.0f, 1e5f,  -1e5f,  3e38f,   -3e38f, 9e4f,   -9e4f};
  const std::vector<float> ones(gates.size(), 1.0f);
  std::vector<float> out(gates.size());
  kernels().silu_mul(gates.data(), ones.data(), static_cast<int>(gates.size()), out.data());
  for (size_t i = 0; i < gates.size(); ++i) {
    EXPECT_TRUE(std::isfinite(out[i])) << gates[i];
    const double exact = gates[i] / (1 + std::exp(-double{gates[i]}));
    EXPECT_NEAR(out[i], exact, std::abs(exact) * 0x1p-21 + 2e-43) << gates[i];
  }
}

TEST_P(Elementwise, AddScaledAndScaleRoundOnce) {
  for (int size : kSizes) {
    const Guarded<float> x = Floats(size), start = Floats(size);
    const Guarded<float> sum = Copy(start), scaled = Copy(x);
    kernels().add_scaled(x.data(), 0.37f, size, sum.data());
    kernels().scale(scaled.data(), 0.37f, size);
    for (int i = 0; i < size; ++i) {
      ASSERT_TRUE(SameBits(sum[i], std::fma(x[i], 0.37f, start[i]))) << i << " of " << size;
      ASSERT_TRUE(SameBits(scaled[i], x[i] * 0.37f)) << i << " of " << size;
    }
  }
}

TEST_P(Elementwise, RopeRotatesNeighboursOrHalves) {
  for (int size : {2, 4, 6, 8, 10, 16, 18, 30, 32, 64, 66, 128}) {
    const Guarded<float> x = Floats(size);
    Guarded<float> cos(size / 2), sin(size / 2);
    for (int i = 0; i < size / 2; ++i) {
      cos[i] = std::cos(0.3f * static_cast<float>(i + 1));
      sin[i] = std::sin(0.3f * static_cast<float>(i + 1));
    }
    const Guarded<float> interleaved = Copy(x), halves = Copy(x);
    kernels().rope_interleaved(interleaved.data(), cos.data(), sin.data(), size);
    kernels().rope_half_split(halves.data(), cos.data(), sin.data(), size);
    for (int i = 0; i < size / 2; ++i) {
      const float c = cos[i], s = sin[i];
      const float a = x[2 * i], b = x[2 * i + 1];
      ASSERT_TRUE(SameBits(interleaved[2 * i], a * c - b * s)) << size;
      ASSERT_TRUE(SameBits(interleaved[2 * i + 1], b * c + a * s)) << size;
      const float low = x[i], high = x[size / 2 + i];
      ASSERT_TRUE(SameBits(halves[i], low * c - high * s)) << size;
      ASSERT_TRUE(SameBits(halves[size / 2 + i], high * c + low * s)) << size;
    }
  }
}

TEST_P(Elementwise, MaxFindsTheLargestAnywhere) {
  for (int size : kSizes) {
    for (int at = 0; at < size; at = at * 2 + 1) {
      Guarded<float> x = Floats(size);
      for (float& v : x) v -= 100.0f;  // below the zeros that a partial load fills in
      x[at] = -50.0f;
      EXPECT_EQ(kernels().max(x.data(), size), -50.0f) << at << " of " << size;
      x[at] = kInf;
      EXPECT_EQ(kernels().max(x.data(), size), kInf);
      x[at] = kNan;
      EXPECT_TRUE(std::isnan(kernels().max(x.data(), size))) << at << " of " << size;
    }
  }
  const std::vector<float> none = {-kInf, -kInf, -kInf};
  EXPECT_EQ(kernels().max(none.data(), 3), -kInf);
}

TEST_P(Elementwise, ExpAndSumReturnsTheSumOfWhatItWrote) {
  for (int size : kSizes) {
    const Guarded<float> start = Floats(size, 5.0f);
    const Guarded<float> x = Copy(start), expected = Copy(start);
    const float shift = kernels().max(x.data(), size);
    const float sum = kernels().exp_and_sum(x.data(), size, shift);
    EXPECT_TRUE(SameBits(sum, reference().exp_and_sum(expected.data(), size, shift))) << size;
    EXPECT_TRUE(SameBits(x.data(), expected.data(), size)) << size;
    double exact = 0;
    for (float v : x) exact += v;
    EXPECT_NEAR(sum, exact, exact * (size / 8 + 4) * 0x1p-24);
    for (int i = 0; i < size; ++i) {
      const double e = std::exp(double{start[i] - shift});
      ASSERT_NEAR(x[i], e, e * 0x1p-22);
    }
  }
}

TEST_P(Elementwise, ExpIsWithinOneUnitInTheLastPlaceOverItsWholeRange) {
  double worst = 0;
  std::vector<float> x, y;
  for (float v = -104.5f; v < 89.0f; v += 0.00137f) x.push_back(v);
  for (float v = -1.0f; v < 1.0f; v += 0.0000613f) x.push_back(v);
  y = x;
  kernels().exp_and_sum(y.data(), static_cast<int>(y.size()), 0.0f);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(double{x[i]});
    if (exact > double{std::numeric_limits<float>::max()}) {
      EXPECT_EQ(y[i], kInf) << x[i];
      continue;
    }
    const double unit = std::max(std::ldexp(1.0, std::ilogb(exact) - 23), 0x1p-149);
    worst = std::max(worst, std::abs(y[i] - exact) / unit);
  }
  EXPECT_LT(worst, 1.0);
}

TEST_P(Elementwise, ExpKnowsItsSpecialValues) {
  std::vector<float> x = {0.0f, -0.0f, -kInf, kInf, kNan, -1e5f, 1e5f, -3e38f, 88.72283f};
  kernels().exp_and_sum(x.data(), static_cast<int>(x.size()), 0.0f);
  EXPECT_EQ(x[0], 1.0f);
  EXPECT_EQ(x[1], 1.0f);
  EXPECT_EQ(x[2], 0.0f);
  EXPECT_EQ(x[3], kInf);
  EXPECT_TRUE(std::isnan(x[4]));
  EXPECT_EQ(x[5], 0.0f);
  EXPECT_EQ(x[6], kInf);
  EXPECT_EQ(x[7], 0.0f);
  EXPECT_TRUE(std::isfinite(x[8]));
}

INSTANTIATE_TEST_SUITE_P(Sets, Elementwise,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& param_info) {
                           return std::string(param_info.param->name);
                         });

}  // namespace
}  // namespace hadal::testing
