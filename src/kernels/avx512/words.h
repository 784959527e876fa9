// Floats to words of 16 bits, and squares of sixteen rows turned.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx512/ints.h"
#include "kernels/avx512/magnitudes.h"
#include "kernels/kernel_table.h"

namespace hadal::avx512 {
namespace {

// What makes `magnitude` a word of `largest`; nothing where it is as good as zero.
HADAL_INLINE float FactorOf(float magnitude, int largest) {
  return magnitude < 1e-30f ? 0.0f : static_cast<float>(largest) / magnitude;
}
// What such a word stands for; infinity, whose factor is nothing, stays in it.
HADAL_INLINE float ScaleFor(float magnitude, int largest) {
  return magnitude < 1e-30f ? 0.0f : magnitude / static_cast<float>(largest);
}

// Sixteen words.
HADAL_INLINE void StoreWords(__m512 x, int16_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(x)));
}

HADAL_INLINE float ScaleOf(const std::byte* row, int cols, int group) {
  float scale;
  __builtin_memcpy(&scale, row + WordScalesOffset(cols) + 4 * group, sizeof(scale));
  return scale;
}

// turned[i] = int i of each of sixteen rows.
HADAL_INLINE void Transpose(const __m512i (&rows)[16], __m512i (&turned)[16]) {
  __m512i two[16], four[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    two[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    two[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    four[i] = _mm512_unpacklo_epi64(two[i], two[i + 2]);
    four[i + 1] = _mm512_unpackhi_epi64(two[i], two[i + 2]);
    four[i + 2] = _mm512_unpacklo_epi64(two[i + 1], two[i + 3]);
    four[i + 3] = _mm512_unpackhi_epi64(two[i + 1], two[i + 3]);
  }
  // Quarter q of four[4 k + c] holds int 4 q + c of rows 4 k to 4 k + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i even[2] = {_mm512_shuffle_i32x4(four[c], four[c + 4], 0x88),
                             _mm512_shuffle_i32x4(four[c + 8], four[c + 12], 0x88)};
    const __m512i odd[2] = {_mm512_shuffle_i32x4(four[c], four[c + 4], 0xDD),
                            _mm512_shuffle_i32x4(four[c + 8], four[c + 12], 0xDD)};
    turned[c] = _mm512_shuffle_i32x4(even[0], even[1], 0x88);
    turned[c + 4] = _mm512_shuffle_i32x4(odd[0], odd[1], 0x88);
    turned[c + 8] = _mm512_shuffle_i32x4(even[0], even[1], 0xDD);
    turned[c + 12] = _mm512_shuffle_i32x4(odd[0], odd[1], 0xDD);
  }
}

// turned[i] = long i of each of eight rows.
HADAL_INLINE void TransposeLongs(const __m512i (&rows)[8], __m512i (&turned)[8]) {
  __m512i two[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    two[i] = _mm512_unpacklo_epi64(rows[i], rows[i + 1]);
    two[i + 1] = _mm512_unpackhi_epi64(rows[i], rows[i + 1]);
  }
  // Quarter q of two[2 k + c] holds long 2 q + c of rows 2 k and 2 k + 1.
#pragma GCC unroll 2
  for (int c = 0; c < 2; ++c) {
    const __m512i even[2] = {_mm512_shuffle_i64x2(two[c], two[c + 2], 0x88),
                             _mm512_shuffle_i64x2(two[c + 4], two[c + 6], 0x88)};
    const __m512i odd[2] = {_mm512_shuffle_i64x2(two[c], two[c + 2], 0xDD),
                            _mm512_shuffle_i64x2(two[c + 4], two[c + 6], 0xDD)};
    turned[c] = _mm512_shuffle_i64x2(even[0], even[1], 0x88);
    turned[c + 2] = _mm512_shuffle_i64x2(odd[0], odd[1], 0x88);
    turned[c + 4] = _mm512_shuffle_i64x2(even[0], even[1], 0xDD);
    turned[c + 6] = _mm512_shuffle_i64x2(odd[0], odd[1], 0xDD);
  }
}

}  // namespace
}  // namespace hadal::avx512
