// Attention on rows of words: how rows are rounded, and that products keep to their formulas.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/dispatch.h"
#include "tensor/scalar.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/guarded.h"

namespace hadal::testing {
namespace {

// Rows of words one after another, the last of them guarded.
struct WordRows {
  int cols;
  int64_t row_bytes = WordRowBytes(cols);
  Guarded<std::byte> data;

  WordRows(int num_rows, int num_cols) : cols(num_cols), data(num_rows * WordRowBytes(num_cols)) {}
  std::byte* row(int r) const { return data.data() + r * row_bytes; }
  int Word(int r, int i) const { return reinterpret_cast<const int16_t*>(row(r))[i]; }
  float Scale(int r, int i) const {
    return reinterpret_cast<const float*>(row(r) + WordScalesOffset(cols))[i / kCacheGroup];
  }
  double Value(int r, int i) const { return double{Scale(r, i)} * Word(r, i); }
};

class AttentionWords : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  WordRows Round(const Guarded<float>& x, int num_rows, int cols, int largest) const {
    WordRows rows(num_rows, cols);
    for (int r = 0; r < num_rows; ++r) {
      GetParam()->round_words(x.data() + r * cols, cols, largest, rows.row(r));
    }
    return rows;
  }
  static Guarded<float> Scores(const KernelTable& kernels, const WordRows& queries, int first,
                               int num_queries, const WordRows& keys, int num_keys) {
    Guarded<float> scores(int64_t{num_queries} * num_keys);
    std::fill(scores.begin(), scores.end(), std::numeric_limits<float>::infinity());
    const Guarded<std::byte> panel = Turn(kernels, queries, first, num_queries, keys.cols);
    kernels.word_scores({.panel = panel.data(),
                         .num_queries = num_queries,
                         .keys = keys.row(0),
                         .key_bytes = keys.row_bytes,
                         .key_cols = keys.cols,
                         .num_keys = num_keys,
                         .dim = keys.cols,
                         .scores = scores.data(),
                         .score_stride = num_keys});
    return scores;
  }
  static Guarded<std::byte> Turn(const KernelTable& kernels, const WordRows& queries, int first,
                                 int num_queries, int dim) {
    Guarded<std::byte> panel(WordPanelBytes(dim));
    kernels.turn_words({.rows = queries.row(first),
                        .row_bytes = queries.row_bytes,
                        .cols = queries.cols,
                        .num_rows = num_queries,
                        .dim = dim,
                        .scale = 0.11f,
                        .panel = panel.data()});
    return panel;
  }
  static Guarded<float> Values(const KernelTable& kernels, const Guarded<float>& weights, int first,
                               const std::vector<int32_t>& limits, const WordRows& values,
                               int num_values, int dim, float start) {
    const int num_queries = static_cast<int>(limits.size());
    Guarded<float> out(int64_t{num_queries} * dim);
    std::fill(out.begin(), out.end(), start);
    kernels.word_values({.weights = weights.data() + int64_t{first} * num_values,
                         .weight_stride = num_values,
                         .num_queries = num_queries,
                         .limits = limits.data(),
                         .values = values.row(0),
                         .value_bytes = values.row_bytes,
                         .value_cols = values.cols,
                         .num_values = num_values,
                         .dim = dim,
                         .out = out.data(),
                         .out_stride = dim});
    return out;
  }
  static Guarded<float> Magnitudes(int64_t count, Random* random) {
    Guarded<float> x = RandomFloats(count, random);
    for (float& value : x) value = std::abs(value);
    return x;
  }
  Random random_{7};
};

constexpr int kWidths[] = {1, 7, 8, 33, 64, 65, 96, 192, 200, 576};

TEST_P(AttentionWords, RowsKeepEachGroupWithinHalfAStep) {
  for (int cols : kWidths) {
    for (int largest : {kLargestWord, kLargestFactorWord}) {
      Guarded<float> x = RandomFloats(cols, &random_);
      x[cols - 1] = 30.0f;  // coarse in its own group alone
      const WordRows row = Round(x, 1, cols, largest);
      for (int i = 0; i < cols; ++i) {
        const int begin = i / kCacheGroup * kCacheGroup, end = std::min(begin + kCacheGroup, cols);
        float magnitude = 0;
        for (int k = begin; k < end; ++k) magnitude = std::max(magnitude, std::abs(x[k]));
        ASSERT_NEAR(row.Value(0, i), x[i], magnitude / static_cast<float>(largest) * 0.501f) << i;
        ASSERT_LE(std::abs(row.Word(0, i)), largest);
      }
      for (int i = cols; i < NumCacheGroups(cols) * kCacheGroup; ++i) ASSERT_EQ(row.Word(0, i), 0);
    }
  }
}

TEST_P(AttentionWords, RowsOfAnyMagnitudeEqualTheReference) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float x : {0.0f, -0.0f, 1e-38f, 1e-31f, 2e-30f, -1.0f, 3e38f, inf, -inf, nan}) {
    for (int largest : {kLargestWord, kLargestFactorWord}) {
      const Guarded<float> values = RandomFloats(72, &random_, std::abs(x) < 1e-20f ? 0.0f : 1.0f);
      values[5] = x;
      const WordRows row = Round(values, 1, 72, largest);
      const WordRows expected(1, 72);
      UsableKernels().front()->round_words(values.data(), 72, largest, expected.row(0));
      ASSERT_TRUE(SameBits(row.Scale(0, 5), expected.Scale(0, 5))) << x;
      ASSERT_EQ(std::isfinite(x), std::isfinite(row.Scale(0, 5) * 0.0f)) << x;
      for (int i = 0; i < 72; ++i) {
        if (std::isfinite(x) || i >= kCacheGroup) {
          ASSERT_EQ(row.Word(0, i), expected.Word(0, i)) << x << " at " << i;
        }
      }
    }
  }
}

TEST_P(AttentionWords, RowsOfTheCacheKeepTheirValues) {
  for (int cols : kWidths) {
    const Guarded<float> x = RandomFloats(cols, &random_);
    for (CacheType type : {CacheType::kF32, CacheType::kBF16, CacheType::kQ8, CacheType::kQ16}) {
      const auto idx = static_cast<size_t>(type);
      Guarded<std::byte> stored(CacheRowBytes(type, cols));
      Guarded<float> back(cols);
      GetParam()->store_cache_row[idx](x.data(), cols, stored.data());
      GetParam()->load_cache_row[idx](stored.data(), cols, 0, back.data());
      const WordRows row(1, cols), expected(1, cols);
      GetParam()->load_cache_words[idx](stored.data(), cols, row.row(0));
      UsableKernels().front()->load_cache_words[idx](stored.data(), cols, expected.row(0));
      for (int i = 0; i < cols; ++i) {
        ASSERT_EQ(row.Word(0, i), expected.Word(0, i)) << i;
        ASSERT_EQ(row.Scale(0, i), expected.Scale(0, i)) << i;
        if (type == CacheType::kQ8 || type == CacheType::kQ16) {
          ASSERT_EQ(static_cast<float>(row.Value(0, i)), back[i]) << i;
        } else {
          ASSERT_NEAR(row.Value(0, i), back[i], 5.0 / kLargestWord) << i;
          const bool is_exact = type == CacheType::kBF16 && std::abs(row.Word(0, i)) >= 256;
          if (is_exact) {
            ASSERT_EQ(static_cast<float>(row.Value(0, i)), back[i]) << i;
          }
        }
      }
    }
  }
}

TEST_P(AttentionWords, RowsOfBf16TakeEveryMagnitude) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float x : {0.0f, -0.0f, 1e-38f, 1e-31f, 2e-30f, 1.0f, -1.9921875f, 3e38f, inf, -inf, nan}) {
    const Guarded<float> values = RandomFloats(8, &random_, 0.0f);
    values[5] = x;
    Guarded<std::byte> stored(CacheRowBytes(CacheType::kBF16, 8));
    const auto idx = static_cast<size_t>(CacheType::kBF16);
    GetParam()->store_cache_row[idx](values.data(), 8, stored.data());
    const WordRows row(1, 8), expected(1, 8);
    GetParam()->load_cache_words[idx](stored.data(), 8, row.row(0));
    UsableKernels().front()->load_cache_words[idx](stored.data(), 8, expected.row(0));
    ASSERT_TRUE(SameBits(row.Scale(0, 5), expected.Scale(0, 5))) << x;
    if (!std::isfinite(x)) {
      ASSERT_FALSE(std::isfinite(row.Scale(0, 5))) << x;
    } else {
      ASSERT_EQ(row.Word(0, 5), expected.Word(0, 5)) << x;
      ASSERT_NEAR(row.Value(0, 5), x, std::abs(x) < 1e-30f ? 1e-30f : std::abs(x) * 0x1p-8f) << x;
      ASSERT_LE(std::abs(row.Word(0, 5)), kLargestWord);
    }
  }
}

TEST_P(AttentionWords, ScoresStayWithinTheBoundOfTheirChainAgainstDoubles) {
  for (int dim : kWidths) {
    const int num_queries = 5, num_keys = 29;
    const WordRows queries = Round(RandomFloats(int64_t{num_queries} * dim, &random_), num_queries,
                                   dim, kLargestFactorWord);
    const WordRows keys =
        Round(RandomFloats(int64_t{num_keys} * dim, &random_), num_keys, dim, kLargestWord);
    const Guarded<float> scores = Scores(*GetParam(), queries, 0, num_queries, keys, num_keys);
    for (int i = 0; i < num_queries * num_keys; ++i) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < dim; ++k) {
        const double term = queries.Value(i / num_keys, k) * keys.Value(i % num_keys, k);
        sum += term;
        magnitude += std::abs(term);
      }
      const double bound = (NumCacheGroups(dim) + 4) * 0x1p-24 * magnitude * 0.11;
      ASSERT_NEAR(scores[i], 0.11f * sum, bound) << "score " << i << ", " << dim;
    }
  }
}

TEST_P(AttentionWords, ScoresEqualTheReferenceToTheBitAloneAndInCompany) {
  for (int dim : kWidths) {
    for (int num_queries : {1, 2, 3, 4, 7, 16, 64}) {
      for (int num_keys : {1, 8, 15, 31, 64}) {
        const WordRows queries = Round(RandomFloats(int64_t{num_queries} * dim, &random_),
                                       num_queries, dim, kLargestFactorWord);
        const WordRows keys =
            Round(RandomFloats(int64_t{num_keys} * dim, &random_), num_keys, dim, kLargestWord);
        const Guarded<float> scores = Scores(*GetParam(), queries, 0, num_queries, keys, num_keys);
        const Guarded<float> expected =
            Scores(*UsableKernels().front(), queries, 0, num_queries, keys, num_keys);
        ASSERT_TRUE(SameBits(scores.data(), expected.data(), scores.size()))
            << num_queries << " queries, " << num_keys << " keys, " << dim;
        const Guarded<float> last =
            Scores(*GetParam(), queries, num_queries - 1, 1, keys, num_keys);
        ASSERT_TRUE(SameBits(last.data(), scores.data() + (num_queries - 1) * num_keys, num_keys));
      }
    }
  }
}

// Rows of the cache are keys when latents are unfolded: more columns than the turned weights have,
// and what comes out are rows of the latents.
TEST_P(AttentionWords, KeysMayHaveMoreColumnsAndBeTheRowsOfTheScores) {
  for (int dim : {32, 64, 512}) {
    for (int num_queries : {1, 6, 17, 40, 64}) {
      const int cols = dim + 64, num_keys = 20, stride = num_queries + 3;
      const WordRows queries =
          Round(RandomFloats(int64_t{num_queries} * dim, &random_), num_queries, dim, kLargestWord);
      const WordRows keys =
          Round(RandomFloats(int64_t{num_keys} * cols, &random_), num_keys, cols, kLargestWord);
      const Guarded<std::byte> panel = Turn(*GetParam(), queries, 0, num_queries, dim);
      Guarded<float> scores(int64_t{num_keys} * stride);
      std::fill(scores.begin(), scores.end(), -7.0f);
      GetParam()->word_scores({.panel = panel.data(),
                               .num_queries = num_queries,
                               .keys = keys.row(0),
                               .key_bytes = keys.row_bytes,
                               .key_cols = cols,
                               .num_keys = num_keys,
                               .next_keys = keys.row(0),
                               .dim = dim,
                               .scores = scores.data(),
                               .score_stride = stride,
                               .has_key_rows = true});
      for (int j = 0; j < num_keys; ++j) {
        for (int q = 0; q < stride; ++q) {
          double sum = 0;
          for (int k = 0; k < dim && q < num_queries; ++k)
            sum += queries.Value(q, k) * keys.Value(j, k);
          ASSERT_NEAR(scores[j * stride + q], q < num_queries ? 0.11 * sum : -7.0, 1e-4)
              << "key " << j << ", query " << q << ", " << dim;
        }
      }
    }
  }
}

TEST_P(AttentionWords, TheLargestWordsDoNotOverflow) {
  const int dim = 128;
  Guarded<float> ones(int64_t{kWordTile} * dim);
  std::fill(ones.begin(), ones.end(), 1.0f);
  const WordRows queries = Round(ones, 1, dim, kLargestFactorWord);
  const WordRows rows = Round(ones, kWordTile, dim, kLargestWord);
  const Guarded<float> scores = Scores(*GetParam(), queries, 0, 1, rows, kWordTile);
  for (float score : scores) ASSERT_NEAR(score, 0.11f * dim, 1e-4);
  const Guarded<float> out = Values(*GetParam(), ones, 0, {kWordTile}, rows, kWordTile, dim, 0.0f);
  for (float value : out) ASSERT_NEAR(value, kWordTile, 1e-4);
}

TEST_P(AttentionWords, ValuesStayWithinTheRoundingOfTheirFactors) {
  for (int cols : kWidths) {
    const int num_values = 61, dim = (cols + 1) / 2 + cols / 3;
    const std::vector<int32_t> limits = {0, 1, 17, 60, 61};
    const auto num_queries = static_cast<int>(limits.size());
    const Guarded<float> weights = Magnitudes(int64_t{num_queries} * num_values, &random_);
    const WordRows values =
        Round(RandomFloats(int64_t{num_values} * cols, &random_), num_values, cols, kLargestWord);
    const Guarded<float> out =
        Values(*GetParam(), weights, 0, limits, values, num_values, dim, 2.0f);
    for (int q = 0; q < num_queries; ++q) {
      for (int c = 0; c < dim; ++c) {
        double sum = 2, magnitude = 0, largest = 0;
        for (int j = 0; j < limits[static_cast<size_t>(q)]; ++j) {
          const double weight = weights[q * num_values + j];
          sum += weight * values.Value(j, c);
          magnitude += std::abs(values.Word(j, c));
          largest = std::max(largest, weight * values.Scale(j, c));
        }
        const double bound = 0.501 * largest / kLargestFactorWord * magnitude + 1e-5;
        ASSERT_NEAR(out[q * dim + c], sum, bound) << "query " << q << ", column " << c;
      }
    }
  }
}

TEST_P(AttentionWords, ValuesEqualTheReferenceToTheBitAloneAndInCompany) {
  for (int cols : {1, 48, 64, 130, 576}) {
    for (int num_values : {1, 2, 9, 64}) {
      for (int num_queries : {1, 2, 3, 4, 7, 16, 64}) {
        const int dim = cols - cols / 9;
        std::vector<int32_t> limits;
        for (int q = 0; q < num_queries; ++q) limits.push_back(num_values - q % num_values);
        const Guarded<float> weights = Magnitudes(int64_t{num_queries} * num_values, &random_);
        const WordRows values = Round(RandomFloats(int64_t{num_values} * cols, &random_),
                                      num_values, cols, kLargestWord);
        const Guarded<float> out =
            Values(*GetParam(), weights, 0, limits, values, num_values, dim, 0.5f);
        const Guarded<float> expected =
            Values(*UsableKernels().front(), weights, 0, limits, values, num_values, dim, 0.5f);
        ASSERT_TRUE(SameBits(out.data(), expected.data(), out.size()))
            << num_queries << " queries, " << num_values << " values, " << cols;
        const Guarded<float> last = Values(*GetParam(), weights, num_queries - 1, {limits.back()},
                                           values, num_values, dim, 0.5f);
        ASSERT_TRUE(SameBits(last.data(), out.data() + int64_t{num_queries - 1} * dim, dim));
      }
    }
  }
}

// Values beyond a limit may not be written yet: nothing of them is seen, not even NaN.
TEST_P(AttentionWords, ValuesBeyondTheLimitAreNotSeen) {
  const int cols = 96, num_values = 20;
  Guarded<float> x = RandomFloats(int64_t{num_values} * cols, &random_);
  const WordRows few = Round(x, 12, cols, kLargestWord);
  std::fill(x.begin() + 12 * cols, x.end(), std::numeric_limits<float>::quiet_NaN());
  const WordRows all = Round(x, num_values, cols, kLargestWord);
  const Guarded<float> weights = Magnitudes(12, &random_);
  Guarded<float> padded(num_values);
  std::copy(weights.begin(), weights.end(), padded.begin());
  std::fill(padded.begin() + 12, padded.end(), 1e9f);
  const Guarded<float> alone = Values(*GetParam(), weights, 0, {12}, few, 12, cols, 0.0f);
  const Guarded<float> out = Values(*GetParam(), padded, 0, {12}, all, num_values, cols, 0.0f);
  EXPECT_TRUE(SameBits(out.data(), alone.data(), out.size()));
}

TEST_P(AttentionWords, NanIsSeenInScoresAndValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Guarded<float> x = RandomFloats(128, &random_);
  x[3] = nan;
  const WordRows bad = Round(x, 1, 128, kLargestWord);
  const WordRows queries = Round(RandomFloats(128, &random_), 1, 128, kLargestFactorWord);
  EXPECT_TRUE(std::isnan(Scores(*GetParam(), queries, 0, 1, bad, 1)[0]));
  const Guarded<float> out = Values(*GetParam(), Magnitudes(1, &random_), 0, {1}, bad, 1, 128, 0);
  for (int c = 0; c < kCacheGroup; ++c) EXPECT_TRUE(std::isnan(out[c]));
}

INSTANTIATE_TEST_SUITE_P(Sets, AttentionWords,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& param_info) {
                           return std::string(param_info.param->name);
                         });

}  // namespace
}  // namespace hadal::testing
