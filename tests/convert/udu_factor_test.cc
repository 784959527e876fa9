#include "convert/udu_factor.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"

namespace hadal {
namespace {

std::unique_ptr<Backend> TestBackend() {
  Result<std::unique_ptr<Backend>> backend = CreateBackend({.num_threads = 2, .kernels = {}});
  EXPECT_TRUE(backend.ok());
  return std::move(backend).value();
}

// A^T A of random rows, so positive definite.
std::vector<float> RandomMoments(int size, int num_rows) {
  std::vector<double> rows(static_cast<size_t>(num_rows) * static_cast<size_t>(size));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = RandomUnit(5, i) - 0.4;
  const auto n = static_cast<size_t>(size);
  std::vector<float> moments(n * n);
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < n; ++b) {
      double sum = a == b ? 0.5 : 0.0;
      for (size_t r = 0; r < static_cast<size_t>(num_rows); ++r)
        sum += rows[r * n + a] * rows[r * n + b];
      moments[a * n + b] = static_cast<float>(sum);
    }
  }
  return moments;
}

class UduSizes : public testing::TestWithParam<int> {};

TEST_P(UduSizes, TheFactorsMultiplyToTheMatrix) {
  const int size = GetParam();
  const auto n = static_cast<size_t>(size);
  const std::vector<float> moments = RandomMoments(size, size + 20);
  const std::unique_ptr<Backend> backend = TestBackend();
  const UduFactor factor = FactorUdu(moments, size, 1e-6f, backend.get());
  // U_kj is columns[j][k] above the diagonal and 1 on it.
  const auto u = [&](size_t k, size_t j) {
    return k == j ? 1.0 : double{factor.columns[j * n + k]};
  };
  double worst = 0.0, largest = 0.0;
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < n; ++b) {
      double sum = 0.0;
      for (size_t j = std::max(a, b); j < n; ++j) {
        sum += u(a, j) * double{factor.diagonal[j]} * u(b, j);
      }
      worst = std::max(worst, std::fabs(sum - moments[a * n + b]));
      largest = std::max(largest, std::fabs(double{moments[a * n + b]}));
    }
  }
  EXPECT_LT(worst, 1e-4 * largest);
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = j; k < n; ++k) EXPECT_EQ(factor.columns[j * n + k], 0.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, UduSizes, testing::Values(1, 32, 64, 65, 160, 192));

TEST(FactorUdu, PivotsThatRoundingMadeTooSmallAreHeldUp) {
  // Rank one: all but the last pivot are zero.
  std::vector<float> moments(16, 1.0f);
  const std::unique_ptr<Backend> backend = TestBackend();
  const UduFactor factor = FactorUdu(moments, 4, 1e-3f, backend.get());
  EXPECT_FLOAT_EQ(factor.diagonal[3], 1.0f);
  for (size_t j = 0; j < 3; ++j) EXPECT_FLOAT_EQ(factor.diagonal[j], 1e-3f);
}

}  // namespace
}  // namespace hadal
