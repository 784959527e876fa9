// Floats to words of 16 bits.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/vec.h"
#include "kernels/kernel_table.h"

namespace hadal::avx2 {
namespace {

// Sixteen words from lanes of ints; packing works in halves of registers.
inline __m256i PackWords(__m256i low, __m256i high) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);  // quarters 0, 2, 1, 3
}

// What makes `magnitude` a word of `largest`; nothing where it is as good as zero.
inline float FactorOf(float magnitude, int largest) {
  return magnitude < 1e-30f ? 0.0f : static_cast<float>(largest) / magnitude;
}
// What such a word stands for; infinity, whose factor is nothing, stays in it.
inline float ScaleFor(float magnitude, int largest) {
  return magnitude < 1e-30f ? 0.0f : magnitude / static_cast<float>(largest);
}

// What a group of values is divided and multiplied by.
struct Rounding {
  float scale, factor;
};
inline Rounding RoundingOf(Vec magnitudes, int largest) {
  const float magnitude = LargestLane(magnitudes);
  return {ScaleFor(magnitude, largest), FactorOf(magnitude, largest)};
}

// x[0, count) to kCacheGroup words, zeros behind; returns the scale.
inline float RoundGroup(const float* x, int count, int largest, int16_t* words) {
  static_assert(kCacheGroup == 64);
  Vec values[8];
  Vec magnitudes = Set(0.0f);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    values[i] = 8 * i < count ? Load(x + 8 * i, count - 8 * i) : Set(0.0f);
    magnitudes = MaxOrNan(magnitudes, _mm256_andnot_ps(Set(-0.0f), values[i]));
  }
  const Rounding rounding = RoundingOf(magnitudes, largest);
  const Vec factor = Set(rounding.factor);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + 8 * i),
                        PackWords(_mm256_cvtps_epi32(Mul(values[i], factor)),
                                  _mm256_cvtps_epi32(Mul(values[i + 1], factor))));
  }
  return rounding.scale;
}

}  // namespace
}  // namespace hadal::avx2
