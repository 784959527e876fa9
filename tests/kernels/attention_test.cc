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

// Vectors that lie anywhere, each guarded behind its end.
class ScatteredRows {
 public:
  ScatteredRows(int count, int dim, Random* random) {
    for (int i = 0; i < count; ++i) {
      rows_.push_back(RandomFloats(dim, random));
      pointers_.push_back(rows_.back().data());
    }
  }
  const float* const* pointers() const { return pointers_.data(); }
  const float* operator[](int i) const { return pointers_[static_cast<size_t>(i)]; }

 private:
  std::vector<Guarded<float>> rows_;
  std::vector<const float*> pointers_;
};

class Attention : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  static Guarded<float> Scores(const KernelTable& kernels, const float* queries, int num_queries,
                               const float* const* keys, int num_keys, int dim) {
    Guarded<float> scores(int64_t{num_queries} * num_keys);
    std::fill(scores.begin(), scores.end(), std::numeric_limits<float>::infinity());
    kernels.attention_scores({.queries = queries,
                              .query_stride = dim,
                              .num_queries = num_queries,
                              .keys = keys,
                              .num_keys = num_keys,
                              .dim = dim,
                              .scale = 0.11f,
                              .scores = scores.data(),
                              .score_stride = num_keys});
    return scores;
  }
  // Starts from `start`, which holds [num_queries, dim].
  static Guarded<float> Values(const KernelTable& kernels, const float* weights, int num_queries,
                               const std::vector<int32_t>& limits, const ScatteredRows& values,
                               int num_values, int dim, const Guarded<float>& start) {
    Guarded<float> out(int64_t{num_queries} * dim);
    std::copy_n(start.data(), out.size(), out.data());
    kernels.attention_values({.weights = weights,
                              .weight_stride = num_values,
                              .num_queries = num_queries,
                              .limits = limits.data(),
                              .values = values.pointers(),
                              .num_values = num_values,
                              .dim = dim,
                              .out = out.data(),
                              .out_stride = dim});
    return out;
  }
  Random random_{5};
};

TEST_P(Attention, ScoresStayWithinTheBoundOfTheirSumsAgainstDoubles) {
  for (int dim : {1, 7, 9, 33, 128, 192, 576}) {
    const int num_queries = 5, num_keys = 29;
    const Guarded<float> queries = RandomFloats(int64_t{num_queries} * dim, &random_);
    const ScatteredRows keys(num_keys, dim, &random_);
    const Guarded<float> scores =
        Scores(*GetParam(), queries.data(), num_queries, keys.pointers(), num_keys, dim);
    for (int i = 0; i < num_queries * num_keys; ++i) {
      const int q = i / num_keys, j = i % num_keys;
      double sum = 0, magnitude = 0;
      for (int k = 0; k < dim; ++k) {
        const double term = double{queries[q * dim + k]} * keys[j][k];
        sum += term;
        magnitude += std::abs(term);
      }
      const double bound = ((dim + 7) / 8 + 4) * 0x1p-24 * magnitude * 0.11;
      ASSERT_NEAR(scores[i], 0.11f * sum, bound) << "query " << q << ", key " << j << ", " << dim;
    }
  }
}

TEST_P(Attention, ScoresEqualTheReferenceToTheBit) {
  for (int dim : {1, 7, 8, 9, 31, 33, 64, 192, 200, 576}) {
    for (int num_queries : {1, 2, 3, 4, 7, 16, 17}) {
      for (int num_keys : {1, 5, 12, 31}) {
        const Guarded<float> queries = RandomFloats(int64_t{num_queries} * dim, &random_);
        const ScatteredRows keys(num_keys, dim, &random_);
        const Guarded<float> scores =
            Scores(*GetParam(), queries.data(), num_queries, keys.pointers(), num_keys, dim);
        const Guarded<float> expected = Scores(*UsableKernels().front(), queries.data(),
                                               num_queries, keys.pointers(), num_keys, dim);
        ASSERT_TRUE(SameBits(scores.data(), expected.data(), scores.size()))
            << num_queries << " queries, " << num_keys << " keys, " << dim;
      }
    }
  }
}

TEST_P(Attention, ScoresOfAQueryDoNotDependOnOthersNorOnTheSplitOfKeys) {
  const int dim = 200, num_keys = 40, num_queries = 17;
  const Guarded<float> queries = RandomFloats(int64_t{num_queries} * dim, &random_);
  const ScatteredRows keys(num_keys, dim, &random_);
  const Guarded<float> all =
      Scores(*GetParam(), queries.data(), num_queries, keys.pointers(), num_keys, dim);
  for (int q = 0; q < num_queries; ++q) {
    for (int split = 1; split < num_keys; split += 6) {
      const float* query = queries.data() + int64_t{q} * dim;
      const Guarded<float> low = Scores(*GetParam(), query, 1, keys.pointers(), split, dim);
      const Guarded<float> high =
          Scores(*GetParam(), query, 1, keys.pointers() + split, num_keys - split, dim);
      const float* row = all.data() + int64_t{q} * num_keys;
      ASSERT_TRUE(SameBits(low.data(), row, split));
      ASSERT_TRUE(SameBits(high.data(), row + split, num_keys - split));
    }
  }
}

TEST_P(Attention, ValuesStayWithinTheBoundOfTheirSumsAgainstDoubles) {
  for (int dim : {1, 7, 9, 40, 128, 512}) {
    const int num_queries = 7, num_values = 150;
    const Guarded<float> weights = RandomFloats(int64_t{num_queries} * num_values, &random_);
    const Guarded<float> start = RandomFloats(int64_t{num_queries} * dim, &random_);
    const ScatteredRows values(num_values, dim, &random_);
    const std::vector<int32_t> limits = {0, 1, 63, 64, 65, 149, 150};
    const Guarded<float> out =
        Values(*GetParam(), weights.data(), num_queries, limits, values, num_values, dim, start);
    for (int i = 0; i < num_queries * dim; ++i) {
      const int q = i / dim;
      double sum = start[i], magnitude = std::abs(sum);
      for (int j = 0; j < limits[static_cast<size_t>(q)]; ++j) {
        const double term = double{weights[q * num_values + j]} * values[j][i % dim];
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(out[i], sum, num_values * 0x1p-24 * magnitude) << "query " << q << ", " << dim;
    }
  }
}

TEST_P(Attention, ValuesEqualTheReferenceToTheBit) {
  for (int dim : {1, 7, 8, 9, 31, 33, 48, 200, 512}) {
    for (int num_queries : {1, 2, 5, 6, 13, 17}) {
      const int num_values = 70;
      const Guarded<float> weights = RandomFloats(int64_t{num_queries} * num_values, &random_);
      const Guarded<float> start = RandomFloats(int64_t{num_queries} * dim, &random_);
      const ScatteredRows values(num_values, dim, &random_);
      std::vector<int32_t> limits;
      for (int q = 0; q < num_queries; ++q) {
        limits.push_back(static_cast<int32_t>(random_() % (num_values + 1)));
      }
      const Guarded<float> out =
          Values(*GetParam(), weights.data(), num_queries, limits, values, num_values, dim, start);
      const Guarded<float> expected = Values(*UsableKernels().front(), weights.data(), num_queries,
                                             limits, values, num_values, dim, start);
      ASSERT_TRUE(SameBits(out.data(), expected.data(), out.size())) << num_queries << ", " << dim;
    }
  }
}

TEST_P(Attention, ValuesOfAQueryDoNotDependOnOthers) {
  const int dim = 72, num_values = 130, num_queries = 17;
  const Guarded<float> weights = RandomFloats(int64_t{num_queries} * num_values, &random_);
  const Guarded<float> start = RandomFloats(int64_t{num_queries} * dim, &random_);
  const ScatteredRows values(num_values, dim, &random_);
  std::vector<int32_t> limits;
  for (int q = 0; q < num_queries; ++q) limits.push_back(num_values - 16 + q);
  limits.back() = 3;
  const Guarded<float> all =
      Values(*GetParam(), weights.data(), num_queries, limits, values, num_values, dim, start);
  for (int q = 0; q < num_queries; ++q) {
    Guarded<float> alone_start(dim);
    std::copy_n(start.data() + int64_t{q} * dim, dim, alone_start.data());
    const Guarded<float> alone =
        Values(*GetParam(), weights.data() + int64_t{q} * num_values, 1,
               {limits[static_cast<size_t>(q)]}, values, num_values, dim, alone_start);
    ASSERT_TRUE(SameBits(alone.data(), all.data() + int64_t{q} * dim, dim)) << q;
  }
}

TEST_P(Attention, ValuesBeyondTheLimitOfAQueryAreNotTouched) {
  const int dim = 40, num_values = 66;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<int32_t> limits = {10, 11, 12, 64, 65, 66, 0, 5};
  const int num_queries = static_cast<int>(limits.size());
  Guarded<float> weights = RandomFloats(int64_t{num_queries} * num_values, &random_);
  for (int q = 0; q < num_queries; ++q) {
    for (int j = limits[static_cast<size_t>(q)]; j < num_values; ++j) {
      weights[q * num_values + j] = nan;
    }
  }
  const Guarded<float> start = RandomFloats(int64_t{num_queries} * dim, &random_);
  const ScatteredRows values(num_values, dim, &random_);
  const Guarded<float> out =
      Values(*GetParam(), weights.data(), num_queries, limits, values, num_values, dim, start);
  for (float value : out) ASSERT_TRUE(std::isfinite(value));
  EXPECT_TRUE(SameBits(out.data() + 6 * dim, start.data() + 6 * dim, dim)) << "limit 0";
}

INSTANTIATE_TEST_SUITE_P(Sets, Attention,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& param_info) {
                           return std::string(param_info.param->name);
                         });

}  // namespace
}  // namespace hadal::testing
