// Stored weights to float, sixteen at a time.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/vec.h"
#include "kernels/kernel_table.h"

namespace hadal::avx2 {
namespace {

constexpr int Smaller(int a, int b) { return a < b ? a : b; }

// Sixteen floats: elements 0 to 7 and 8 to 15.
struct VecPair {
  Vec low, high;
};

// E4M3 codes as half floats 2^8 times smaller: the sign moves to bit 15 and the other seven bits to
// 13..7, where exponent and mantissa of a half stand; the processor's conversion then takes care of
// subnormal values. Wrong for the two NaN codes, which give 480 / 256.
inline __m256i E4m3AsHalves(__m128i codes) {
  const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
  return _mm256_and_si256(wide, _mm256_set1_epi16(static_cast<int16_t>(0xBF80)));
}

inline VecPair HalvesToFloat(__m256i halves) {
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}

inline __m128i LoadBytes16(const char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

inline Vec Bf16ToFloat(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// Reads the rows of one weight. Load() wants sixteen elements from `p` on.
template <QuantFormat format>
struct Reader {
  static constexpr int kBytes = format == QuantFormat::kF32 ? 4 : 2;

  static VecPair Load(const char* p) {
    if constexpr (format == QuantFormat::kF32) {
      const auto* floats = reinterpret_cast<const float*>(p);
      return {_mm256_loadu_ps(floats), _mm256_loadu_ps(floats + 8)};
    } else if constexpr (format == QuantFormat::kBF16) {
      return {Bf16ToFloat(LoadBytes16(p)), Bf16ToFloat(LoadBytes16(p + 16))};
    } else {
      static_assert(format == QuantFormat::kF16);
      return {_mm256_cvtph_ps(LoadBytes16(p)), _mm256_cvtph_ps(LoadBytes16(p + 16))};
    }
  }
};

template <>
struct Reader<QuantFormat::kF8Block128> {
  static constexpr int kBytes = 1;
};

template <QuantFormat format>
const char* RowBytes(const WeightRows& weights, int row) {
  return static_cast<const char*>(weights.data) +
         static_cast<int64_t>(row) * weights.cols * Reader<format>::kBytes;
}

// The first scale of a row; kF8Block128 only.
inline const char* RowScales(const WeightRows& weights, int row) {
  const int64_t scale_row = (weights.first_row + row) / kF8BlockSize;
  return static_cast<const char*>(weights.scales) + scale_row * weights.scale_stride * 4;
}

inline float LoadScale(const char* scales, int block) {
  float scale;
  __builtin_memcpy(&scale, scales + static_cast<int64_t>(block) * 4, sizeof(scale));
  return scale;
}

// Copies the last `count` < 16 elements of a row into `buffer` and fills it with zeros, so that
// nothing past the row is read: the mapping may end there.
template <int kBytes>
const char* PaddedTail(const char* p, int count, char (&buffer)[64]) {
  for (char& byte : buffer) byte = 0;
  for (int i = 0; i < count * kBytes; ++i) buffer[i] = p[i];
  return buffer;
}

// The elements at `p` whatever they are. `scale` is the block's; kF8Block128 only.
template <QuantFormat format>
VecPair LoadExact(const char* p, Vec scale) {
  if constexpr (format == QuantFormat::kF8Block128) {
    __m256i halves = E4m3AsHalves(LoadBytes16(p));
    // Adding one to the last mantissa bit carries into bit 14 for the NaN codes alone; with that
    // bit set the half is NaN.
    const __m256i carry = _mm256_add_epi16(halves, _mm256_set1_epi16(0x80));
    halves = _mm256_or_si256(halves, _mm256_and_si256(carry, _mm256_set1_epi16(0x4000)));
    const VecPair v = HalvesToFloat(halves);
    const Vec restore = Set(256.0f);  // exact, and apart from the scale so that it cannot overflow
    return {Mul(Mul(v.low, restore), scale), Mul(Mul(v.high, restore), scale)};
  } else {
    return Reader<format>::Load(p);
  }
}

// Elements [first, first + count) of a row into `out`, then zeros up to a multiple of 16.
// REQUIRES: first is a multiple of 16.
template <QuantFormat format>
void DecodeSpan(const WeightRows& weights, int row, int first, int count, float* out) {
  constexpr int kBytes = Reader<format>::kBytes;
  const char* p = RowBytes<format>(weights, row) + static_cast<int64_t>(first) * kBytes;
  const char* scales = nullptr;
  if constexpr (format == QuantFormat::kF8Block128) scales = RowScales(weights, row);
  char buffer[64];
  Vec scale = Set(0.0f);
  for (int i = 0; i < count; i += 16) {
    if constexpr (format == QuantFormat::kF8Block128) {
      if (i == 0 || (first + i) % kF8BlockSize == 0) {
        scale = Set(LoadScale(scales, (first + i) / kF8BlockSize));
      }
    }
    const char* from = p + static_cast<int64_t>(i) * kBytes;
    if (count - i < 16) from = PaddedTail<kBytes>(from, count - i, buffer);
    const VecPair v = LoadExact<format>(from, scale);
    _mm256_storeu_ps(out + i, v.low);
    _mm256_storeu_ps(out + i + 8, v.high);
  }
}

}  // namespace
}  // namespace hadal::avx2
