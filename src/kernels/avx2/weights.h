// Stored weights to float, sixteen at a time.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/blocks.h"
#include "kernels/avx2/vec.h"
#include "kernels/kernel_table.h"

namespace hadal::avx2 {
namespace {

constexpr int Smaller(int a, int b) { return a < b ? a : b; }

constexpr bool HasScales(QuantFormat format) { return format == QuantFormat::kF8Block128; }

template <QuantFormat format>
constexpr int kElementBytes = static_cast<int>(ElementBytes(format));

// Sixteen floats: elements 0 to 7 and 8 to 15.
struct VecPair {
  Vec low, high;
};

inline __m128i LoadBytes16(const char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

inline Vec Bf16ToFloat(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// Eight E4M3 codes as floats 2^120 times smaller: sign, exponent and mantissa moved to where a
// float has them. A subnormal code becomes a subnormal float. Wrong for the NaN codes, which give
// 480.
inline Vec E4m3ToTinyFloat(const char* p) {
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  const __m256i wide = _mm256_slli_epi32(_mm256_cvtepi8_epi32(codes), 20);
  return _mm256_castsi256_ps(_mm256_and_si256(wide, _mm256_set1_epi32(int32_t(0x87F00000))));
}
constexpr float kTinyFactor = 0x1p120f;

// The sixteen elements at `p` as they are stored: before the scale, and for E4M3 tiny.
template <QuantFormat format>
VecPair LoadStored(const char* p) {
  if constexpr (format == QuantFormat::kF32) {
    const auto* floats = reinterpret_cast<const float*>(p);
    return {_mm256_loadu_ps(floats), _mm256_loadu_ps(floats + 8)};
  } else if constexpr (format == QuantFormat::kBF16) {
    return {Bf16ToFloat(LoadBytes16(p)), Bf16ToFloat(LoadBytes16(p + 16))};
  } else if constexpr (format == QuantFormat::kF16) {
    return {_mm256_cvtph_ps(LoadBytes16(p)), _mm256_cvtph_ps(LoadBytes16(p + 16))};
  } else {
    static_assert(format == QuantFormat::kF8Block128);
    return {E4m3ToTinyFloat(p), E4m3ToTinyFloat(p + 8)};
  }
}

inline int32_t LoadWord(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return word;
}

// How scaled weights are converted. The fast way is right unless a code is NaN or a scale is so
// large that kTinyFactor overflows it: whoever uses it asks Exactness afterwards and if need be
// starts again with the exact way. The other formats have one way.
enum class Conversion { kFast, kExact };

// The scale of the block that holds column `col`, ready for LoadScaled.
template <Conversion conversion>
Vec PreparedScale(const char* row_scales, int col) {
  const void* at = row_scales + int64_t{col / kF8BlockSize} * 4;
  const Vec scale = _mm256_castsi256_ps(_mm256_set1_epi32(LoadWord(at)));
  return conversion == Conversion::kFast ? Mul(scale, Set(kTinyFactor)) : scale;
}

// The true values of tiny floats, NaN codes included.
inline Vec FromTinyFloat(Vec tiny) {
  const Vec magnitude = _mm256_andnot_ps(Set(-0.0f), tiny);
  const Vec nan_code = _mm256_castsi256_ps(_mm256_set1_epi32(0x07F00000));
  const Vec is_nan = _mm256_cmp_ps(magnitude, nan_code, _CMP_EQ_OQ);  // all bits set: a NaN
  return Mul(_mm256_or_ps(tiny, is_nan), Set(kTinyFactor));
}

// The sixteen elements at `p`; `scale` is ignored by formats without scales.
template <QuantFormat format, Conversion conversion>
VecPair LoadScaled(const char* p, Vec scale) {
  VecPair v = LoadStored<format>(p);
  if constexpr (HasScales(format)) {
    if constexpr (conversion == Conversion::kExact) {
      v = {FromTinyFloat(v.low), FromTinyFloat(v.high)};
    }
    v = {Mul(v.low, scale), Mul(v.high, scale)};
  }
  return v;
}

// Whether the fast conversion was right for all that it saw.
template <QuantFormat format>
struct Exactness {
  void See(const char*) {}
  void SeeScale(Vec) {}
  bool holds() const { return true; }
};

template <>
struct Exactness<QuantFormat::kF8Block128> {
  __m128i largest = _mm_setzero_si128();  // code without its sign, in each byte
  Vec defects = _mm256_setzero_ps();      // x - x is not +0 for an x that is infinite or NaN

  void See(const char* codes) {
    const __m128i sign = _mm_set1_epi8(static_cast<char>(0x80));
    largest = _mm_max_epu8(largest, _mm_or_si128(LoadBytes16(codes), sign));
  }
  void SeeScale(Vec prepared) { defects = _mm256_or_ps(defects, Sub(prepared, prepared)); }
  bool holds() const {
    const __m128i nan = _mm_cmpeq_epi8(largest, _mm_set1_epi8(static_cast<char>(0xFF)));
    const __m256i bits = _mm256_castps_si256(defects);
    return _mm_testz_si128(nan, nan) != 0 && _mm256_testz_si256(bits, bits) != 0;
  }
};

template <QuantFormat format>
const char* RowBytes(const WeightRows& weights, int row) {
  return static_cast<const char*>(weights.data) +
         static_cast<int64_t>(row) * weights.cols * kElementBytes<format>;
}

// The scales of the blocks of a row, one after another, unaligned; formats with scales only.
inline const char* RowScales(const WeightRows& weights, int row) {
  const int64_t scale_row = (weights.first_row + row) / kF8BlockSize;
  return static_cast<const char*>(weights.scales) + scale_row * weights.scale_stride * 4;
}

// Copies the last `count` < 16 elements of a row into `buffer` and fills it with zeros, so that
// nothing past the row is read: the mapping may end there.
template <QuantFormat format>
const char* PaddedTail(const char* p, int count, char (&buffer)[64]) {
  for (char& byte : buffer) byte = 0;
  for (int i = 0; i < count * kElementBytes<format>; ++i) buffer[i] = p[i];
  return buffer;
}

template <QuantFormat format, Conversion conversion>
bool DecodeSpanBy(const WeightRows& weights, int row, int first, int count, float* out) {
  const char* p = RowBytes<format>(weights, row) + int64_t{first} * kElementBytes<format>;
  const char* scales = HasScales(format) ? RowScales(weights, row) : nullptr;
  Exactness<format> exactness;
  Vec scale = Set(0.0f);
  for (int i = 0; i < count;) {
    int end = count;
    if constexpr (HasScales(format)) {
      const int col = first + i;
      end = Smaller(count, i + kF8BlockSize - col % kF8BlockSize);
      scale = PreparedScale<conversion>(scales, col);
      if constexpr (conversion == Conversion::kFast) exactness.SeeScale(scale);
    }
    for (; i < end; i += 16) {
      const char* from = p + int64_t{i} * kElementBytes<format>;
      char buffer[64];
      if (count - i < 16) from = PaddedTail<format>(from, count - i, buffer);
      if constexpr (conversion == Conversion::kFast) exactness.See(from);
      const VecPair v = LoadScaled<format, conversion>(from, scale);
      _mm256_storeu_ps(out + i, v.low);
      _mm256_storeu_ps(out + i + 8, v.high);
    }
  }
  return conversion == Conversion::kExact || exactness.holds();
}

// Of grouped weights. A row lies four bytes here and four there, so this is slow; it serves
// products with float activations, which are there to measure against.
template <QuantFormat format>
void DecodeGroupedSpan(const WeightRows& weights, int row, int first, int count, float* out) {
  const GroupShape shape = {format, weights.group_size, weights.has_zero_points};
  const int64_t block_bytes = BlockBytes(shape, shape.group_size);
  const int r = row % kTileRows, in_step = format == QuantFormat::kInt4Group ? r % 8 : r;
  const auto* tile =
      static_cast<const char*>(weights.data) + row / kTileRows * TileBytes(shape, weights.cols);
  for (int col = first; col < first + count;) {
    const int group = col / shape.group_size, begin = group * shape.group_size;
    const int end = Smaller(begin + shape.group_size, weights.cols);
    const char* block = tile + group * block_bytes;
    const char* scales = block + CodeBytes(shape, end - begin);
    uint16_t bits;
    __builtin_memcpy(&bits, scales + 2 * r, 2);
    const float scale = _cvtsh_ss(bits);
    const int pair = shape.has_zero_points ? scales[2 * kTileRows + r % 8] & 255 : 0x88;
    const int zero = r >= 8 ? pair >> 4 : pair & 15;
    for (const int last = Smaller(end, first + count); col < last; ++col) {
      const int i = col - begin;
      const char code = block[i / kStepCols * StepBytes(format) + in_step * kStepCols + i % 4];
      const int value =
          format == QuantFormat::kInt8Group ? code : (r >= 8 ? (code >> 4) & 15 : code & 15) - zero;
      out[col - first] = static_cast<float>(value) * scale;
    }
  }
}

// Elements [first, first + count) of a row into `out`, then zeros up to a multiple of 16.
// REQUIRES: first is a multiple of 16.
template <QuantFormat format>
void DecodeSpan(const WeightRows& weights, int row, int first, int count, float* out) {
  if constexpr (IsGrouped(format)) {
    return DecodeGroupedSpan<format>(weights, row, first, count, out);
  } else if constexpr (IsBlocked(format)) {
    return DecodeBlockSpan<format>(weights, row, first, count, out);
  } else {
    if (DecodeSpanBy<format, Conversion::kFast>(weights, row, first, count, out)) return;
    DecodeSpanBy<format, Conversion::kExact>(weights, row, first, count, out);
  }
}

}  // namespace
}  // namespace hadal::avx2
