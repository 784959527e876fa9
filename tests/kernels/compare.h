// Equality of bits, where all NaN count as one.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace hadal::testing {

inline bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// The first place where [count] values differ, or success.
inline ::testing::AssertionResult SameBits(const float* a, const float* b, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!SameBits(a[i], b[i])) {
      return ::testing::AssertionFailure()
             << "value " << i << " is " << a[i] << ", expected " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace hadal::testing
