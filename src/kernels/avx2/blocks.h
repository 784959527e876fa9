// Blocks of GGUF's types to floats, 32 elements at a time. Specification, 7.7; every value has the
// bits that reference/blocks.h gives: products and differences are rounded one after the other.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/vec.h"
#include "kernels/kernel_table.h"

namespace hadal::avx2 {
namespace {

#include "kernels/common/block_facts-inl.h"

constexpr int kMaxHalves = 16;  // of 16 elements in a block

// A block's scales, of each half of each run, and what is taken away or added: floats that products
// broadcast from memory.
struct BlockScales {
  alignas(32) float scale[kMaxHalves];
  alignas(32) float min[kMaxHalves];
};

#define HADAL_BLOCK_INLINE [[gnu::always_inline]] inline

HADAL_BLOCK_INLINE const __m128i* At128(const char* p) {
  return reinterpret_cast<const __m128i*>(p);
}
HADAL_BLOCK_INLINE const __m256i* At256(const char* p) {
  return reinterpret_cast<const __m256i*>(p);
}

HADAL_BLOCK_INLINE uint32_t WordAt(const char* p) {
  uint32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return word;
}

HADAL_BLOCK_INLINE float HalfToFloat(const char* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return _cvtsh_ss(bits);
}

// Eight bytes without sign, and with one, times a float.
HADAL_BLOCK_INLINE void StoreScaled(__m128i bytes, float factor, float* out) {
  const Vec values = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  _mm256_store_ps(out, Mul(Set(factor), values));
}
HADAL_BLOCK_INLINE void StoreScaledSigned(__m128i bytes, float factor, float* out) {
  const Vec values = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  _mm256_store_ps(out, Mul(Set(factor), values));
}

// Six-bit scales of Q3_K, less 32.
HADAL_BLOCK_INLINE __m128i ScalesOfQ3K(const char* packed) {
  const uint32_t a = WordAt(packed), b = WordAt(packed + 4), high = WordAt(packed + 8);
  constexpr uint32_t kLow = 0x0F0F0F0F, kHigh = 0x30303030;
  const uint32_t words[4] = {(a & kLow) | ((high << 4) & kHigh), (b & kLow) | ((high << 2) & kHigh),
                             ((a >> 4) & kLow) | (high & kHigh),
                             ((b >> 4) & kLow) | ((high >> 2) & kHigh)};
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
  return _mm_sub_epi8(codes, _mm_set1_epi8(32));
}

// Scales and minima of Q4_K and Q5_K: eight scales in the low half, eight minima in the high one.
HADAL_BLOCK_INLINE __m128i SubScales(const char* packed) {
  const uint32_t a = WordAt(packed), b = WordAt(packed + 4), c = WordAt(packed + 8);
  constexpr uint32_t kSix = 0x3F3F3F3F, kFour = 0x0F0F0F0F, kTwo = 0x30303030;
  const uint32_t words[4] = {a & kSix, (c & kFour) | ((a >> 2) & kTwo), b & kSix,
                             ((c >> 4) & kFour) | ((b >> 2) & kTwo)};
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
}

template <QuantFormat format>
HADAL_BLOCK_INLINE void LoadBlockScales(const char* block, BlockScales* to) {
  using F = QuantFormat;
  if constexpr (format == F::kQ4_K || format == F::kQ5_K) {
    const __m128i sub = SubScales(block + 4);
    StoreScaled(sub, HalfToFloat(block), to->scale);
    StoreScaled(_mm_srli_si128(sub, 8), HalfToFloat(block + 2), to->min);
  } else if constexpr (format == F::kQ6_K) {
    const __m128i scales = _mm_loadu_si128(At128(block + 192));
    const float d = HalfToFloat(block + 208);
    StoreScaledSigned(scales, d, to->scale);
    StoreScaledSigned(_mm_srli_si128(scales, 8), d, to->scale + 8);
  } else if constexpr (format == F::kQ3_K) {
    const __m128i scales = ScalesOfQ3K(block + 96);
    const float d = HalfToFloat(block + 108);
    StoreScaledSigned(scales, d, to->scale);
    StoreScaledSigned(_mm_srli_si128(scales, 8), d, to->scale + 8);
  } else if constexpr (format == F::kQ2_K) {
    const __m128i both = _mm_loadu_si128(At128(block)), low = _mm_set1_epi8(15);
    const __m128i scales = _mm_and_si128(both, low);
    const __m128i mins = _mm_and_si128(_mm_srli_epi16(both, 4), low);
    const float d = HalfToFloat(block + 80), dmin = HalfToFloat(block + 82);
    StoreScaled(scales, d, to->scale);
    StoreScaled(_mm_srli_si128(scales, 8), d, to->scale + 8);
    StoreScaled(mins, dmin, to->min);
    StoreScaled(_mm_srli_si128(mins, 8), dmin, to->min + 8);
  } else if constexpr (format == F::kIq4Xs) {
    const float d = HalfToFloat(block);
    for (int s = 0; s < 8; ++s) {
      const int low = (static_cast<unsigned char>(block[4 + s / 2]) >> (4 * (s % 2))) & 15;
      const int high = (static_cast<unsigned char>(block[2 + s / 4]) >> (2 * (s % 4))) & 3;
      to->scale[s] = d * static_cast<float>((low | (high << 4)) - 32);
    }
  } else {
    to->scale[0] = HalfToFloat(block);
    if constexpr (UseOfMin(format) == MinUse::kAdd) to->min[0] = HalfToFloat(block + 2);
  }
}

// Sixteen bytes of two codes: the low halves, then the high ones.
HADAL_BLOCK_INLINE __m256i Nibbles(const char* p) {
  const __m128i bytes = _mm_loadu_si128(At128(p));
  const __m256i both = _mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes);
  return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

// Bits `shift` on of 32 bytes, as many as the mask has.
template <int shift>
HADAL_BLOCK_INLINE __m256i BitsOfBytes(const char* p, int mask) {
  const __m256i bytes = _mm256_loadu_si256(At256(p));
  return _mm256_and_si256(_mm256_srli_epi16(bytes, shift),
                          _mm256_set1_epi8(static_cast<char>(mask)));
}

// `value` in the bytes whose bit of the 32 is set.
HADAL_BLOCK_INLINE __m256i WhereBitIsSet(const char* p, int value) {
  const __m256i places =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i word = _mm256_set1_epi32(static_cast<int32_t>(WordAt(p)));
  const __m256i bytes = _mm256_shuffle_epi8(word, places);
  const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bits), bits);
  return _mm256_and_si256(is_set, _mm256_set1_epi8(static_cast<char>(value)));
}

// Bits `from` on of each byte, moved to the place of `to`, of which those of the mask stay.
template <int from, int to>
HADAL_BLOCK_INLINE __m256i MovedBits(const char* p, int mask) {
  __m256i bytes = _mm256_loadu_si256(At256(p));
  if (from > to) bytes = _mm256_srli_epi16(bytes, from > to ? from - to : 0);
  if (from < to) bytes = _mm256_slli_epi16(bytes, from < to ? to - from : 0);
  return _mm256_and_si256(bytes, _mm256_set1_epi8(static_cast<char>(mask)));
}

HADAL_BLOCK_INLINE __m256i MinusEach(__m256i codes, int value) {
  return _mm256_sub_epi8(codes, _mm256_set1_epi8(static_cast<char>(value)));
}

HADAL_BLOCK_INLINE __m256i NonLinear(__m256i nibbles) {
  const __m128i table =
      _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
  return _mm256_shuffle_epi8(_mm256_set_m128i(table, table), nibbles);
}

// Elements [32 run, 32 run + 32) of a block as bytes: codes and their offset, without sign but for
// HasSignedCodes. With kSpread > 1 the block is so many times as wide (turned_block.h), and these
// are its first 32 bytes of each area; only for types that take bits of a byte at its own place.
template <QuantFormat format, int run, int kSpread = 1>
HADAL_BLOCK_INLINE __m256i LoadStoredCodes(const char* block) {
  using F = QuantFormat;
  if constexpr (format == F::kQ4_0) {
    return Nibbles(block + 2);
  } else if constexpr (format == F::kQ4_1) {
    return Nibbles(block + 4);
  } else if constexpr (format == F::kQ5_0) {
    return _mm256_or_si256(Nibbles(block + 6), WhereBitIsSet(block + 2, 16));
  } else if constexpr (format == F::kQ5_1) {
    return _mm256_or_si256(Nibbles(block + 8), WhereBitIsSet(block + 4, 16));
  } else if constexpr (format == F::kQ8_0) {
    return _mm256_loadu_si256(At256(block + 2));
  } else if constexpr (format == F::kIq4Nl) {
    return NonLinear(Nibbles(block + 2));
  } else if constexpr (format == F::kIq4Xs) {
    return NonLinear(Nibbles(block + 8 + 16 * run));
  } else if constexpr (format == F::kQ4_K) {
    return BitsOfBytes<4 * (run % 2)>(block + kSpread * (16 + 32 * (run / 2)), 15);
  } else if constexpr (format == F::kQ5_K) {
    return _mm256_or_si256(BitsOfBytes<4 * (run % 2)>(block + kSpread * (48 + 32 * (run / 2)), 15),
                           MovedBits<run, 4>(block + kSpread * 16, 1 << 4));
  } else if constexpr (format == F::kQ2_K) {
    return BitsOfBytes<2 * (run % 4)>(block + kSpread * (16 + 32 * (run / 4)), 3);
  } else if constexpr (format == F::kQ3_K) {
    return _mm256_or_si256(BitsOfBytes<2 * (run % 4)>(block + kSpread * (32 + 32 * (run / 4)), 3),
                           MovedBits<run, 2>(block, 1 << 2));
  } else {
    static_assert(format == F::kQ6_K);
    constexpr int kHalf = run / 4, kPart = run % 4;
    const char* low_area = block + kSpread * (64 * kHalf + 32 * (kPart % 2));
    const __m256i low = BitsOfBytes<4 * (kPart / 2)>(low_area, 15);
    return _mm256_or_si256(low,
                           MovedBits<2 * kPart, 4>(block + kSpread * (128 + 32 * kHalf), 3 << 4));
  }
}

// The codes themselves, as signed bytes.
template <QuantFormat format, int run>
HADAL_BLOCK_INLINE __m256i LoadCodes(const char* block) {
  const __m256i stored = LoadStoredCodes<format, run>(block);
  return CodeOffset(format) == 0 ? stored : MinusEach(stored, CodeOffset(format));
}

// Elements [8 quarter, 8 quarter + 8) of a run.
template <QuantFormat format, int run, int quarter>
HADAL_BLOCK_INLINE Vec QuarterOfRun(__m256i codes, const BlockScales& scales) {
  constexpr int kScale = (kRun * run + 8 * quarter) / ScaleElements(format);
  const __m128i half =
      quarter < 2 ? _mm256_castsi256_si128(codes) : _mm256_extracti128_si256(codes, 1);
  const __m128i eight = quarter % 2 == 0 ? half : _mm_srli_si128(half, 8);
  Vec value = Mul(_mm256_broadcast_ss(&scales.scale[kScale]),
                  _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)));
  if constexpr (UseOfMin(format) == MinUse::kAdd) {
    value = Add(value, _mm256_broadcast_ss(&scales.min[kScale]));
  }
  if constexpr (UseOfMin(format) == MinUse::kSubtract) {
    value = Sub(value, _mm256_broadcast_ss(&scales.min[kScale]));
  }
  return value;
}

template <QuantFormat format, int run>
HADAL_BLOCK_INLINE void DecodeRun(const char* block, const BlockScales& scales, float* out) {
  const __m256i codes = LoadCodes<format, run>(block);
  _mm256_storeu_ps(out, QuarterOfRun<format, run, 0>(codes, scales));
  _mm256_storeu_ps(out + 8, QuarterOfRun<format, run, 1>(codes, scales));
  _mm256_storeu_ps(out + 16, QuarterOfRun<format, run, 2>(codes, scales));
  _mm256_storeu_ps(out + 24, QuarterOfRun<format, run, 3>(codes, scales));
}

// Runs from `run` on of a block.
template <QuantFormat format, int run = 0>
HADAL_BLOCK_INLINE void DecodeRuns(const char* block, const BlockScales& scales, float* out) {
  if constexpr (run < SizeOfBlock(format).elements / kRun) {
    DecodeRun<format, run>(block, scales, out + kRun * run);
    DecodeRuns<format, run + 1>(block, scales, out);
  }
}

template <QuantFormat format>
void DecodeBlock(const char* block, float* out) {
  BlockScales scales;
  LoadBlockScales<format>(block, &scales);
  DecodeRuns<format>(block, scales, out);
}

// Elements [first, first + count) of a row, as DecodeSpan promises. REQUIRES: first is a multiple
// of 16; the row is whole blocks.
template <QuantFormat format>
void DecodeBlockSpan(const WeightRows& weights, int row, int first, int count, float* out) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  const char* base = static_cast<const char*>(weights.data) +
                     static_cast<int64_t>(row) * (weights.cols / kSize.elements) * kSize.bytes;
  const auto at = [&](int col) { return base + int64_t{col / kSize.elements} * kSize.bytes; };
  int i = 0;
  while (i < count) {
    const int in_block = (first + i) % kSize.elements;
    if (in_block == 0 && count - i >= kSize.elements) {
      DecodeBlock<format>(at(first + i), out + i);
      i += kSize.elements;
      continue;
    }
    // A part of a block.
    alignas(32) float whole[kSize.elements];
    DecodeBlock<format>(at(first + i), whole);
    const int rest = kSize.elements - in_block, taken = rest < count - i ? rest : count - i;
    for (int k = 0; k < taken; ++k) out[i + k] = whole[in_block + k];
    i += taken;
  }
  for (; i % 16 != 0; ++i) out[i] = 0.0f;
}

#undef HADAL_BLOCK_INLINE

}  // namespace
}  // namespace hadal::avx2
