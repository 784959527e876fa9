// GGUF's blocks of sixteen outputs, turned in eights (block_layout.h): lanes are outputs. Codes and
// scales come out as in reference/blocks.h.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx512/ints.h"
#include "kernels/kernel_table.h"

namespace hadal::avx512 {
namespace {

#include "kernels/common/block_facts-inl.h"

constexpr int kStepsPerRun = kRun / kStepCols;
template <QuantFormat format>
constexpr int kRuns = SizeOfBlock(format).elements / kRun;
template <QuantFormat format>
constexpr int kParts = kRun / ScaleElements(format);  // of a run, each with its scale
template <QuantFormat format>
constexpr int kGroups = kRuns<format>* kParts<format>;
template <QuantFormat format>
constexpr bool kHasMin = UseOfMin(format) != MinUse::kNone;

// Where the same block of two neighbouring eights begins.
struct SixteenRows {
  const char* low;
  const char* high;

  // Four bytes of each output, and two.
  HADAL_INLINE __m512i Word(int64_t offset) const {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low + 8 * offset));
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(first),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high + 8 * offset)), 1);
  }
  HADAL_INLINE __m256i Shorts(int64_t offset) const {
    return _mm256_set_m128i(_mm_loadu_si128(reinterpret_cast<const __m128i*>(high + 8 * offset)),
                            _mm_loadu_si128(reinterpret_cast<const __m128i*>(low + 8 * offset)));
  }
  HADAL_INLINE __m512 Halves(int64_t offset) const { return _mm512_cvtph_ps(Shorts(offset)); }
};

HADAL_INLINE __m512i Masked(__m512i words, int byte) {
  return _mm512_and_si512(words, _mm512_set1_epi8(static_cast<char>(byte)));
}
// (words & byte) | rest
HADAL_INLINE __m512i MaskedOr(__m512i words, int byte, __m512i rest) {
  return _mm512_ternarylogic_epi32(words, _mm512_set1_epi8(static_cast<char>(byte)), rest, 0xEA);
}

// The scales and minima of a block, of each group of columns.
template <QuantFormat format>
struct BlockScales {
  float scale[kGroups<format>][kTileRows];
  float min[kHasMin<format> ? kGroups<format> : 1][kTileRows];
};

// to[0 .. 4) = factor * the bytes of a word.
HADAL_INLINE void StoreScaled(__m512i bytes, __m512 factor, float (*to)[kTileRows]) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i code = _mm512_and_si512(_mm512_srli_epi32(bytes, 8 * i), _mm512_set1_epi32(255));
    _mm512_store_ps(to[i], _mm512_mul_ps(factor, _mm512_cvtepi32_ps(code)));
  }
}
HADAL_INLINE void StoreScaledSigned(__m512i bytes, __m512 factor, float (*to)[kTileRows]) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i code = _mm512_srai_epi32(_mm512_slli_epi32(bytes, 24 - 8 * i), 24);
    _mm512_store_ps(to[i], _mm512_mul_ps(factor, _mm512_cvtepi32_ps(code)));
  }
}

template <QuantFormat format>
HADAL_INLINE void LoadScales(const SixteenRows& rows, BlockScales<format>* to) {
  using F = QuantFormat;
  constexpr int kLow = 0x0F, kHigh = 0x30;
  if constexpr (format == F::kQ4_K || format == F::kQ5_K) {
    const __m512i head = rows.Word(0), a = rows.Word(4), b = rows.Word(8), c = rows.Word(12);
    const __m512 scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(head));
    const __m512 min = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(head, 16)));
    StoreScaled(Masked(a, 0x3F), scale, to->scale);
    StoreScaled(MaskedOr(_mm512_srli_epi32(a, 2), kHigh, Masked(c, kLow)), scale, to->scale + 4);
    StoreScaled(Masked(b, 0x3F), min, to->min);
    StoreScaled(MaskedOr(_mm512_srli_epi32(b, 2), kHigh, Masked(_mm512_srli_epi32(c, 4), kLow)),
                min, to->min + 4);
  } else if constexpr (format == F::kQ6_K) {
    const __m512 scale = rows.Halves(208);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      StoreScaledSigned(rows.Word(192 + 4 * k), scale, to->scale + 4 * k);
    }
  } else if constexpr (format == F::kQ3_K) {
    // Low halves of sixteen scales in two words, two more bits of each in a third; less 32.
    const __m512i a = rows.Word(96), b = rows.Word(100), high = rows.Word(104);
    const __m512i low_of[4] = {a, b, _mm512_srli_epi32(a, 4), _mm512_srli_epi32(b, 4)};
    const __m512i high_of[4] = {_mm512_slli_epi32(high, 4), _mm512_slli_epi32(high, 2), high,
                                _mm512_srli_epi32(high, 2)};
    const __m512 scale = rows.Halves(108);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const __m512i codes = MaskedOr(high_of[k], kHigh, Masked(low_of[k], kLow));
      StoreScaledSigned(_mm512_sub_epi8(codes, _mm512_set1_epi8(32)), scale, to->scale + 4 * k);
    }
  } else if constexpr (format == F::kQ2_K) {
    const __m512 scale = rows.Halves(80), min = rows.Halves(82);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const __m512i both = rows.Word(4 * k);
      StoreScaled(Masked(both, kLow), scale, to->scale + 4 * k);
      StoreScaled(Masked(_mm512_srli_epi32(both, 4), kLow), min, to->min + 4 * k);
    }
  } else if constexpr (format == F::kIq4Xs) {
    // Four bits of a word, and two of a short; less 32.
    const __m512i low = rows.Word(4), high = _mm512_cvtepu16_epi32(rows.Shorts(2));
    const __m512 scale = rows.Halves(0);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      const __m512i four = _mm512_and_si512(_mm512_srli_epi32(low, 4 * g), _mm512_set1_epi32(15));
      const __m512i two = _mm512_and_si512(_mm512_srli_epi32(high, 2 * g), _mm512_set1_epi32(3));
      const __m512i code = _mm512_or_si512(four, _mm512_slli_epi32(two, 4));
      const __m512 less = _mm512_cvtepi32_ps(_mm512_sub_epi32(code, _mm512_set1_epi32(32)));
      _mm512_store_ps(to->scale[g], _mm512_mul_ps(scale, less));
    }
  } else {
    _mm512_store_ps(to->scale[0], rows.Halves(0));
    if constexpr (kHasMin<format>) _mm512_store_ps(to->min[0], rows.Halves(2));
  }
}

// Where the bits of a run are: words from an offset on, and how far they are moved.
struct RunPlace {
  int64_t low, high;
  __m512i shift;   // of the low bits, to the right
  __m512i rotate;  // of the high bits, to the left
};

template <QuantFormat format>
HADAL_INLINE RunPlace PlaceOf(int run) {
  using F = QuantFormat;
  const auto place = [](int64_t low, int shift, int64_t high, int rotate) {
    return RunPlace{low, high, _mm512_set1_epi32(shift), _mm512_set1_epi32(rotate)};
  };
  switch (format) {
    case F::kQ4_K:
      return place(16 + 32 * (run / 2), 4 * (run % 2), 0, 0);
    case F::kQ5_K:
      return place(48 + 32 * (run / 2), 4 * (run % 2), 16, 4 - run);
    case F::kQ2_K:
      return place(16 + 32 * (run / 4), 2 * (run % 4), 0, 0);
    case F::kQ3_K:
      return place(32 + 32 * (run / 4), 2 * (run % 4), 0, 2 - run);
    case F::kQ6_K:
      return place(64 * (run / 4) + 32 * (run % 2), 4 * (run % 4 / 2), 128 + 32 * (run / 4),
                   4 - 2 * (run % 4));
    case F::kIq4Xs:
      return place(8 + 16 * run, 0, 0, 0);
    default:
      return place(0, 0, 0, 0);
  }
}

// The nibbles of 16 bytes: the low halves are the first four steps, the high ones the others.
HADAL_INLINE __m512i NibblesOf(const SixteenRows& rows, int64_t begin, int step) {
  const __m512i bytes = rows.Word(begin + 4 * (step % 4));
  return Masked(step < 4 ? bytes : _mm512_srli_epi32(bytes, 4), 15);
}

// `codes` with 16 more where the bits of the step's four columns are set.
HADAL_INLINE __m512i WithFifthBits(__m512i codes, __m512i bits, int step) {
  const char byte = static_cast<char>(step / 2);
  const __m512i places = _mm512_add_epi8(
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12)),
      _mm512_set1_epi8(byte));
  const __m512i which =
      _mm512_set1_epi32(step % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010));
  const __mmask64 is_set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(bits, places), which);
  return _mm512_or_si512(codes, _mm512_maskz_set1_epi8(is_set, 16));
}

HADAL_INLINE __m512i NonLinear(__m512i nibbles) {
  const __m128i table =
      _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), nibbles);
}

// Four columns of a run: the codes and their offset, without sign but for HasSignedCodes.
template <QuantFormat format>
HADAL_INLINE __m512i LoadCodes(const SixteenRows& rows, const RunPlace& place, int step) {
  using F = QuantFormat;
  const auto low_bits = [&](int mask) __attribute__((always_inline)) {
    return Masked(_mm512_srlv_epi32(rows.Word(place.low + 4 * step), place.shift), mask);
  };
  const auto with_high_bits = [&](__m512i low, int mask) __attribute__((always_inline)) {
    return MaskedOr(_mm512_rolv_epi32(rows.Word(place.high + 4 * step), place.rotate), mask, low);
  };
  if constexpr (format == F::kQ4_0) {
    return NibblesOf(rows, 2, step);
  } else if constexpr (format == F::kQ4_1) {
    return NibblesOf(rows, 4, step);
  } else if constexpr (format == F::kQ5_0) {
    return WithFifthBits(NibblesOf(rows, 6, step), rows.Word(2), step);
  } else if constexpr (format == F::kQ5_1) {
    return WithFifthBits(NibblesOf(rows, 8, step), rows.Word(4), step);
  } else if constexpr (format == F::kQ8_0) {
    return rows.Word(2 + 4 * step);
  } else if constexpr (format == F::kIq4Nl) {
    return NonLinear(NibblesOf(rows, 2, step));
  } else if constexpr (format == F::kIq4Xs) {
    return NonLinear(NibblesOf(rows, place.low, step));
  } else if constexpr (format == F::kQ4_K) {
    return low_bits(15);
  } else if constexpr (format == F::kQ5_K) {
    return with_high_bits(low_bits(15), 1 << 4);
  } else if constexpr (format == F::kQ2_K) {
    return low_bits(3);
  } else if constexpr (format == F::kQ3_K) {
    return with_high_bits(low_bits(3), 1 << 2);
  } else {
    static_assert(format == F::kQ6_K);
    return with_high_bits(low_bits(15), 3 << 4);
  }
}

}  // namespace
}  // namespace hadal::avx512
