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

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class MatMul : public ::testing::TestWithParam<std::tuple<const KernelTable*, QuantFormat>> {
 protected:
  const KernelTable& kernels() const { return *std::get<0>(GetParam()); }
  QuantFormat format() const { return std::get<1>(GetParam()); }

  // x [num_rows, cols] times outputs [first, first + num_outputs) of w; every array is guarded.
  static Guarded<float> Product(const KernelTable& kernels, const float* x, int num_rows,
                                const StoredWeight& w, int first, int num_outputs) {
    Guarded<float> out(int64_t{num_rows} * num_outputs);
    std::fill(out.begin(), out.end(), kInf);  // must be overwritten
    kernels.matmul[static_cast<int>(w.format())]({.x = x,
                                                  .x_stride = w.cols(),
                                                  .num_rows = num_rows,
                                                  .weights = w.Rows(first),
                                                  .num_outputs = num_outputs,
                                                  .out = out.data(),
                                                  .out_stride = num_outputs,
                                                  .accumulate = false});
    return out;
  }
  Guarded<float> Product(const Guarded<float>& x, const StoredWeight& w) const {
    return Product(kernels(), x.data(), static_cast<int>(x.size() / w.cols()), w, 0, w.rows());
  }

  Random random_{20240507};
};

// C084: among them the widths of V2-Lite that are no multiple of 256.
TEST_P(MatMul, StaysWithinTheBoundOfItsSumsAgainstDoubles) {
  for (int cols : {1, 7, 8, 9, 15, 16, 17, 31, 33, 127, 129, 192, 200, 576, 1408, 10944}) {
    for (int num_rows : {1, 2, 3, 4, 5, 9, 17}) {
      const StoredWeight w(format(), 13, cols, &random_);
      const Guarded<float> x = RandomFloats(int64_t{num_rows} * cols, &random_);
      const Guarded<float> out = Product(x, w);
      for (int t = 0; t < num_rows; ++t) {
        for (int o = 0; o < w.rows(); ++o) {
          double sum = 0, magnitude = 0;
          for (int i = 0; i < cols; ++i) {
            const double term = double{x[int64_t{t} * cols + i]} * w.At(o, i);
            sum += term;
            magnitude += std::abs(term);
          }
          // Each lane rounds once per step, the tree three times.
          const double bound = ((cols + 7) / 8 + 3) * 0x1p-24 * magnitude;
          ASSERT_NEAR(out[int64_t{t} * w.rows() + o], sum, bound)
              << cols << " columns, row " << t << " of " << num_rows << ", output " << o;
        }
      }
    }
  }
}

TEST_P(MatMul, EqualsTheReferenceToTheBit) {
  for (int cols : {1, 7, 8, 9, 16, 24, 31, 33, 200, 255, 257, 576, 1408}) {
    for (int num_rows : {1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 130}) {
      const int num_outputs = num_rows % 2 == 0 ? 26 : 13;
      const StoredWeight w(format(), num_outputs, cols, &random_);
      const Guarded<float> x = RandomFloats(int64_t{num_rows} * cols, &random_);
      const Guarded<float> out = Product(x, w);
      const Guarded<float> expected =
          Product(*UsableKernels().front(), x.data(), num_rows, w, 0, num_outputs);
      ASSERT_TRUE(SameBits(out.data(), expected.data(), out.size()))
          << num_rows << " rows, " << cols << " columns";
    }
  }
}

TEST_P(MatMul, GivesARowTheSameBitsAloneAndAmongOthers) {
  constexpr int kRows = 17;
  for (int cols : {33, 200, 576}) {
    const StoredWeight w(format(), 29, cols, &random_);
    const Guarded<float> x = RandomFloats(int64_t{kRows} * cols, &random_);
    const Guarded<float> all = Product(x, w);
    for (int num_rows = 1; num_rows < kRows; ++num_rows) {
      for (int first = 0; first < kRows; first += num_rows) {
        const int count = std::min(num_rows, kRows - first);
        const Guarded<float> part =
            Product(kernels(), x.data() + int64_t{first} * cols, count, w, 0, w.rows());
        ASSERT_TRUE(SameBits(part.data(), all.data() + int64_t{first} * w.rows(), part.size()))
            << count << " rows from " << first << ", " << cols << " columns";
      }
    }
  }
}

TEST_P(MatMul, GivesAnOutputTheSameBitsHoweverOutputsAreSplit) {
  for (int num_rows : {1, 3, 6}) {
    const StoredWeight w(format(), 31, 200, &random_);
    const Guarded<float> x = RandomFloats(int64_t{num_rows} * w.cols(), &random_);
    const Guarded<float> all = Product(x, w);
    for (int split = 1; split < w.rows(); ++split) {
      for (const auto& [first, count] : {std::pair(0, split), std::pair(split, w.rows() - split)}) {
        const Guarded<float> part = Product(kernels(), x.data(), num_rows, w, first, count);
        for (int t = 0; t < num_rows; ++t) {
          ASSERT_TRUE(SameBits(part.data() + int64_t{t} * count,
                               all.data() + int64_t{t} * w.rows() + first, count))
              << count << " outputs from " << first << ", row " << t;
        }
      }
    }
  }
}

// More rows than a tile holds, more columns than a span, neither a multiple.
TEST_P(MatMul, CrossesTileEdgesWithoutATrace) {
  const StoredWeight w(format(), 14, 1037, &random_);
  const Guarded<float> x = RandomFloats(int64_t{263} * w.cols(), &random_);
  const Guarded<float> all = Product(x, w);
  for (int t = 0; t < 263; t += 31) {
    const Guarded<float> alone =
        Product(kernels(), x.data() + int64_t{t} * w.cols(), 1, w, 0, w.rows());
    ASSERT_TRUE(SameBits(alone.data(), all.data() + int64_t{t} * w.rows(), w.rows())) << t;
  }
}

TEST_P(MatMul, AddsToWhatIsThereAndLeavesTheRest) {
  for (int num_rows : {1, 2, 5}) {
    const StoredWeight w(format(), 11, 96, &random_);
    const Guarded<float> x = RandomFloats(int64_t{num_rows} * w.cols(), &random_);
    const Guarded<float> product = Product(x, w);
    constexpr int kStride = 17;
    Guarded<float> out = RandomFloats(int64_t{num_rows} * kStride, &random_);
    const std::vector<float> before(out.begin(), out.end());
    kernels().matmul[static_cast<int>(format())]({.x = x.data(),
                                                  .x_stride = w.cols(),
                                                  .num_rows = num_rows,
                                                  .weights = w.Rows(),
                                                  .num_outputs = w.rows(),
                                                  .out = out.data(),
                                                  .out_stride = kStride,
                                                  .accumulate = true});
    for (int i = 0; i < num_rows * kStride; ++i) {
      const int t = i / kStride, o = i % kStride;
      const float expected = o < w.rows()
                                 ? before[static_cast<size_t>(i)] + product[t * w.rows() + o]
                                 : before[static_cast<size_t>(i)];
      ASSERT_TRUE(SameBits(out[i], expected)) << "row " << t << ", output " << o;
    }
  }
}

TEST_P(MatMul, ReadsRowsThatLieApart) {
  const StoredWeight w(format(), 9, 40, &random_);
  constexpr int kStride = 57;
  const Guarded<float> apart = RandomFloats(6 * kStride, &random_);
  Guarded<float> x(6 * w.cols()), out(6 * w.rows());
  for (int t = 0; t < 6; ++t) {
    std::copy_n(apart.data() + t * kStride, w.cols(), x.data() + t * w.cols());
  }
  kernels().matmul[static_cast<int>(format())]({.x = apart.data(),
                                                .x_stride = kStride,
                                                .num_rows = 6,
                                                .weights = w.Rows(),
                                                .num_outputs = w.rows(),
                                                .out = out.data(),
                                                .out_stride = w.rows(),
                                                .accumulate = false});
  const Guarded<float> expected = Product(x, w);
  EXPECT_TRUE(SameBits(out.data(), expected.data(), out.size()));
}

TEST_P(MatMul, IgnoresWhereAWeightStarts) {
  const StoredWeight w(format(), 10, 72, &random_);
  const Guarded<float> x = RandomFloats(int64_t{5} * w.cols(), &random_);
  const int64_t bytes = w.rows() * w.cols() * ElementBytes(format());
  for (int num_rows : {1, 5}) {
    const Guarded<float> expected = Product(kernels(), x.data(), num_rows, w, 0, w.rows());
    for (int shift = 1; shift < 8; ++shift) {
      const Guarded<char> moved(bytes + shift);  // ends `shift` bytes before the guarded page
      std::memcpy(moved.data(), w.Rows().data, static_cast<size_t>(bytes));
      WeightRows rows = w.Rows();
      rows.data = moved.data();
      Guarded<float> out(int64_t{num_rows} * w.rows());
      kernels().matmul[static_cast<int>(format())]({.x = x.data(),
                                                    .x_stride = w.cols(),
                                                    .num_rows = num_rows,
                                                    .weights = rows,
                                                    .num_outputs = w.rows(),
                                                    .out = out.data(),
                                                    .out_stride = w.rows(),
                                                    .accumulate = false});
      ASSERT_TRUE(SameBits(out.data(), expected.data(), out.size())) << shift;
    }
  }
}

TEST_P(MatMul, KeepsNanAndInfinityInTheirRow) {
  for (int num_rows : {1, 4, 6}) {
    const StoredWeight w(format(), 9, 48, &random_);
    Guarded<float> x = RandomFloats(int64_t{num_rows} * w.cols(), &random_);
    const Guarded<float> before = Product(x, w);
    x[3] = kNan;
    const Guarded<float> nan = Product(x, w);
    x[3] = kInf;
    const Guarded<float> inf = Product(x, w);
    for (int o = 0; o < w.rows(); ++o) {
      EXPECT_TRUE(std::isnan(nan[o]));
      EXPECT_TRUE(w.At(o, 3) == 0 ? std::isnan(inf[o]) : std::isinf(inf[o]));
    }
    const int64_t rest = before.size() - w.rows();
    EXPECT_TRUE(SameBits(nan.data() + w.rows(), before.data() + w.rows(), rest));
    EXPECT_TRUE(SameBits(inf.data() + w.rows(), before.data() + w.rows(), rest));
  }
}

// Cases C083 and C088: hidden states of 9e4 and 1e5, and sums past the range of 16 bits.
TEST_P(MatMul, StaysFiniteForHiddenStatesBeyondSixteenBits) {
  for (int num_rows : {1, 5}) {
    StoredWeight w(format(), 9, 1408, &random_);
    Guarded<float> x = RandomFloats(int64_t{num_rows} * w.cols(), &random_, 1e5f);
    x[7] = 9e4f;
    const Guarded<float> out = Product(x, w);
    for (int t = 0; t < num_rows; ++t) {
      for (int o = 0; o < w.rows(); ++o) {
        double sum = 0, magnitude = 0;
        for (int i = 0; i < w.cols(); ++i) {
          const double term = double{x[int64_t{t} * w.cols() + i]} * w.At(o, i);
          sum += term;
          magnitude += std::abs(term);
        }
        EXPECT_NEAR(out[t * w.rows() + o], sum, 180 * 0x1p-24 * magnitude);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, MatMul,
                         ::testing::Combine(::testing::ValuesIn(UsableKernels().begin(),
                                                                UsableKernels().end()),
                                            ::testing::ValuesIn(kAllFormats)),
                         [](const auto& param_info) {
                           return std::string(std::get<0>(param_info.param)->name) + "_" +
                                  FormatName(std::get<1>(param_info.param));
                         });

class Fp8MatMul : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  // One product of each number of rows against the element-wise truth, to the bit.
  void ExpectExactWeights(const StoredWeight& w) {
    for (int num_rows : {1, 2, 6}) {
      const Guarded<float> x = RandomFloats(int64_t{num_rows} * w.cols(), &random_);
      Guarded<float> decoded(int64_t{w.rows()} * w.cols());
      for (int i = 0; i < decoded.size(); ++i) decoded[i] = w.At(i / w.cols(), i % w.cols());
      Guarded<float> out(int64_t{num_rows} * w.rows()), expected(out.size());
      MatMulArgs args = {.x = x.data(),
                         .x_stride = w.cols(),
                         .num_rows = num_rows,
                         .weights = w.Rows(),
                         .num_outputs = w.rows(),
                         .out = out.data(),
                         .out_stride = w.rows(),
                         .accumulate = false};
      GetParam()->matmul[static_cast<int>(QuantFormat::kF8Block128)](args);
      args.weights = {.data = decoded.data(),
                      .scales = nullptr,
                      .scale_stride = 0,
                      .first_row = 0,
                      .cols = w.cols()};
      args.out = expected.data();
      UsableKernels().front()->matmul[static_cast<int>(QuantFormat::kF32)](args);
      EXPECT_TRUE(SameBits(out.data(), expected.data(), out.size())) << num_rows << " rows";
    }
  }
  Random random_{7};
};

TEST_P(Fp8MatMul, TakesTheScaleOfEachBlockWhenNeitherSideIsAMultiple) {
  ExpectExactWeights(StoredWeight(QuantFormat::kF8Block128, 130, 200, &random_));
}

TEST_P(Fp8MatMul, TakesTheScaleRowOfTheWholeMatrixForASlice) {
  ExpectExactWeights(StoredWeight(QuantFormat::kF8Block128, 60, 300, &random_, 100));
  ExpectExactWeights(StoredWeight(QuantFormat::kF8Block128, 5, 129, &random_, 127));
}

TEST_P(Fp8MatMul, KnowsEveryCode) {
  StoredWeight w(QuantFormat::kF8Block128, 16, 264, &random_);
  for (int r = 0; r < w.rows(); ++r) {
    for (int c = 0; c < w.cols(); ++c) {
      const int code = (r * 16 + c) % 256;
      const bool is_nan = (code & 0x7F) == 0x7F;
      w.SetCode(r, c, static_cast<uint8_t>(is_nan ? 0 : code));
    }
  }
  ExpectExactWeights(w);
}

TEST_P(Fp8MatMul, TurnsNanCodesIntoNanOfTheirOutputOnly) {
  for (int col : {0, 77, 128, 199}) {
    for (uint8_t code : {uint8_t{0x7F}, uint8_t{0xFF}}) {
      StoredWeight w(QuantFormat::kF8Block128, 11, 200, &random_);
      w.SetCode(4, col, code);
      w.SetCode(9, col, code);
      ExpectExactWeights(w);
    }
  }
}

TEST_P(Fp8MatMul, SurvivesExtremeScales) {
  for (float scale : {0.0f, 1e-45f, 1e-38f, 3e38f, kInf, kNan}) {
    StoredWeight w(QuantFormat::kF8Block128, 9, 200, &random_);
    w.SetScale(1, scale);
    ExpectExactWeights(w);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, Fp8MatMul,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& param_info) {
                           return std::string(param_info.param->name);
                         });

}  // namespace
}  // namespace hadal::testing
