// Rows of the latent cache in their forms.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/dispatch.h"
#include "tensor/scalar.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/guarded.h"

namespace hadal::testing {
namespace {

class CacheRow : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  Guarded<float> ThereAndBack(CacheType type, const Guarded<float>& x) const {
    const int cols = static_cast<int>(x.size());
    Guarded<std::byte> row(CacheRowBytes(type, cols));
    Guarded<float> back(cols);
    GetParam()->store_cache_row[static_cast<size_t>(type)](x.data(), cols, row.data());
    GetParam()->load_cache_row[static_cast<size_t>(type)](row.data(), cols, 0, back.data());
    return back;
  }
  Random random_{11};
};

constexpr int kWidths[] = {4, 8, 40, 64, 96, 128, 576};

TEST_P(CacheRow, Float32KeepsEveryBit) {
  for (int cols : kWidths) {
    const Guarded<float> x = RandomFloats(cols, &random_);
    ASSERT_TRUE(SameBits(ThereAndBack(CacheType::kF32, x).data(), x.data(), cols));
  }
}

TEST_P(CacheRow, Bf16RoundsToNearest) {
  for (int cols : kWidths) {
    const Guarded<float> x = RandomFloats(cols, &random_);
    const Guarded<float> back = ThereAndBack(CacheType::kBF16, x);
    for (int i = 0; i < cols; ++i) ASSERT_EQ(back[i], Bf16ToFloat(FloatToBf16(x[i]))) << i;
  }
}

TEST_P(CacheRow, Q8KeepsEachGroupWithinHalfAStep) {
  for (int cols : kWidths) {
    Guarded<float> x = RandomFloats(cols, &random_);
    x[cols - 1] = 30.0f;  // coarse in its own group alone
    const Guarded<float> back = ThereAndBack(CacheType::kQ8, x);
    for (int begin = 0; begin < cols; begin += kCacheGroup) {
      const int end = std::min(begin + kCacheGroup, cols);
      float largest = 0;
      for (int i = begin; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
      for (int i = begin; i < end; ++i) ASSERT_NEAR(back[i], x[i], largest / 127 * 0.501f) << i;
    }
  }
}

TEST_P(CacheRow, Q16KeepsEachGroupWithinHalfAStep) {
  for (int cols : kWidths) {
    Guarded<float> x = RandomFloats(cols, &random_);
    x[cols - 1] = 30.0f;
    const Guarded<float> back = ThereAndBack(CacheType::kQ16, x);
    for (int begin = 0; begin < cols; begin += kCacheGroup) {
      const int end = std::min(begin + kCacheGroup, cols);
      float largest = 0;
      for (int i = begin; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
      for (int i = begin; i < end; ++i) ASSERT_NEAR(back[i], x[i], largest / 4095 * 0.501f) << i;
    }
  }
}

TEST_P(CacheRow, EqualsTheReferenceToTheBit) {
  const KernelTable& reference = *UsableKernels().front();
  for (int cols : kWidths) {
    const Guarded<float> x = RandomFloats(cols, &random_);
    for (int type = 0; type < kNumCacheTypes; ++type) {
      const int64_t bytes = CacheRowBytes(static_cast<CacheType>(type), cols);
      Guarded<std::byte> row(bytes), expected(bytes);
      std::fill(row.begin(), row.end(), std::byte{0});
      std::fill(expected.begin(), expected.end(), std::byte{0});
      GetParam()->store_cache_row[type](x.data(), cols, row.data());
      reference.store_cache_row[type](x.data(), cols, expected.data());
      ASSERT_TRUE(std::equal(row.begin(), row.end(), expected.begin())) << type << " " << cols;
      Guarded<float> back(cols), expected_back(cols);
      GetParam()->load_cache_row[type](row.data(), cols, 0, back.data());
      reference.load_cache_row[type](row.data(), cols, 0, expected_back.data());
      ASSERT_TRUE(SameBits(back.data(), expected_back.data(), cols)) << type << " " << cols;
      for (int first : {0, 1, 4, 60, 64, 512}) {
        if (first > cols) continue;
        Guarded<float> part(cols - first);
        GetParam()->load_cache_row[type](row.data(), cols, first, part.data());
        ASSERT_TRUE(SameBits(part.data(), back.data() + first, cols - first)) << type << first;
      }
    }
  }
}

TEST_P(CacheRow, AFaultInARowStaysVisible) {
  for (int type = 0; type < kNumCacheTypes; ++type) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Guarded<float> x = RandomFloats(64, &random_);
      x[17] = bad;
      EXPECT_FALSE(std::isfinite(ThereAndBack(static_cast<CacheType>(type), x)[17])) << type;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllSets, CacheRow,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace hadal::testing
