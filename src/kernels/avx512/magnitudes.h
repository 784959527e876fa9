// The largest magnitude of floats, by which groups are rounded.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx512/ints.h"

namespace hadal::avx512 {
namespace {

HADAL_INLINE float FloatOfBits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// Magnitudes as ints, in whose order those of NaN are the largest.
HADAL_INLINE __m512i MagnitudeBits(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
}
HADAL_INLINE float LargestOfBits(__m512i bits) {
  return FloatOfBits(static_cast<uint32_t>(_mm512_reduce_max_epi32(bits)));
}

}  // namespace
}  // namespace hadal::avx512
