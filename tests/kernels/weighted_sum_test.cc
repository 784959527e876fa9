#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include "kernels/dispatch.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/guarded.h"
#include "tests/kernels/stored_weight.h"

namespace hadal::testing {
namespace {

class WeightedSum : public ::testing::TestWithParam<std::tuple<const KernelTable*, QuantFormat>> {
 protected:
  const KernelTable& kernels() const { return *std::get<0>(GetParam()); }
  QuantFormat format() const { return std::get<1>(GetParam()); }

  static Guarded<float> Sum(const KernelTable& kernels, const float* x, int num_rows,
                            const StoredWeight& w) {
    Guarded<float> out(int64_t{num_rows} * w.cols());
    std::fill(out.begin(), out.end(), std::numeric_limits<float>::infinity());
    kernels.weighted_sum[static_cast<int>(w.format())]({.x = x,
                                                        .x_stride = w.rows(),
                                                        .num_rows = num_rows,
                                                        .weights = w.Rows(),
                                                        .num_weight_rows = w.rows(),
                                                        .out = out.data(),
                                                        .out_stride = w.cols()});
    return out;
  }
  Random random_{11};
};

TEST_P(WeightedSum, StaysWithinTheBoundOfItsSumsAgainstDoubles) {
  for (int cols : {1, 7, 8, 9, 31, 33, 200, 512}) {
    for (int num_weight_rows : {1, 3, 4, 5, 130}) {
      constexpr int kRows = 3;
      const StoredWeight w(format(), num_weight_rows, cols, &random_);
      const Guarded<float> x = RandomFloats(int64_t{kRows} * num_weight_rows, &random_);
      const Guarded<float> out = Sum(kernels(), x.data(), kRows, w);
      for (int i = 0; i < kRows * cols; ++i) {
        const int t = i / cols, c = i % cols;
        double sum = 0, magnitude = 0;
        for (int r = 0; r < num_weight_rows; ++r) {
          const double term = double{x[t * num_weight_rows + r]} * w.At(r, c);
          sum += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(out[i], sum, num_weight_rows * 0x1p-24 * magnitude) << "row " << t << ", " << c;
      }
    }
  }
}

TEST_P(WeightedSum, EqualsTheReferenceToTheBit) {
  for (int cols : {1, 7, 8, 9, 16, 31, 33, 200, 512}) {
    for (int num_rows : {1, 2, 16, 17}) {
      const StoredWeight w(format(), num_rows == 1 ? 1 : 128 + num_rows % 4, cols, &random_);
      const Guarded<float> x = RandomFloats(int64_t{num_rows} * w.rows(), &random_);
      const Guarded<float> out = Sum(kernels(), x.data(), num_rows, w);
      const Guarded<float> expected = Sum(*UsableKernels().front(), x.data(), num_rows, w);
      ASSERT_TRUE(SameBits(out.data(), expected.data(), out.size())) << num_rows << " x " << cols;
    }
  }
}

TEST_P(WeightedSum, GivesARowTheSameBitsAloneAndAmongOthers) {
  const StoredWeight w(format(), 66, 200, &random_);
  const Guarded<float> x = RandomFloats(int64_t{17} * w.rows(), &random_);
  const Guarded<float> all = Sum(kernels(), x.data(), 17, w);
  for (int num_rows = 1; num_rows < 17; ++num_rows) {
    const Guarded<float> part = Sum(kernels(), x.data(), num_rows, w);
    ASSERT_TRUE(SameBits(part.data(), all.data(), part.size())) << num_rows;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, WeightedSum,
                         ::testing::Combine(::testing::ValuesIn(UsableKernels().begin(),
                                                                UsableKernels().end()),
                                            ::testing::ValuesIn(kAllFormats)),
                         [](const auto& param_info) {
                           return std::string(std::get<0>(param_info.param)->name) + "_" +
                                  FormatName(std::get<1>(param_info.param));
                         });

class Fp8WeightedSum : public ::testing::TestWithParam<const KernelTable*> {};

TEST_P(Fp8WeightedSum, TakesTheScaleOfEachBlockHoweverExtreme) {
  Random random(19);
  StoredWeight w(QuantFormat::kF8Block128, 70, 300, &random, 100);
  w.SetScale(1, std::numeric_limits<float>::infinity());
  w.SetScale(5, 3e38f);
  w.SetCode(3, 299, uint8_t{0xFF});
  const Guarded<float> x = RandomFloats(w.rows(), &random);
  Guarded<float> out(w.cols());
  GetParam()->weighted_sum[static_cast<int>(QuantFormat::kF8Block128)]({.x = x.data(),
                                                                        .x_stride = w.rows(),
                                                                        .num_rows = 1,
                                                                        .weights = w.Rows(),
                                                                        .num_weight_rows = w.rows(),
                                                                        .out = out.data(),
                                                                        .out_stride = w.cols()});
  for (int c = 0; c < w.cols(); ++c) {
    float sum = 0;
    for (int r = 0; r < w.rows(); ++r) sum = std::fma(x[r], w.At(r, c), sum);
    ASSERT_TRUE(SameBits(out[c], sum)) << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, Fp8WeightedSum,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& param_info) {
                           return std::string(param_info.param->name);
                         });

}  // namespace
}  // namespace hadal::testing
