// Sums of codes of eight outputs with rows rounded to bytes, exact within a group of columns that
// shares a scale, and what becomes of them.
#pragma once

#include <cstdint>

#include "kernels/avx2/blocks.h"
#include "kernels/avx2/ints.h"
#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

constexpr int kLargestInput = 127;

// The largest magnitude of a code less its offset.
constexpr int LargestCode(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ2_K:
      return 3;
    case QuantFormat::kQ3_K:
      return 4;
    case QuantFormat::kQ4_0:
      return 8;
    case QuantFormat::kQ4_1:
    case QuantFormat::kQ4_K:
      return 15;
    case QuantFormat::kQ5_0:
      return 16;
    case QuantFormat::kQ5_1:
    case QuantFormat::kQ5_K:
      return 31;
    case QuantFormat::kQ6_K:
      return 32;
    default:
      return 128;
  }
}

// Steps whose products a word of 16 bits adds up exactly: each brings two of them, and what
// overflows on the way wraps back.
template <QuantFormat format>
constexpr int kStepsPerWordSum = Least(ScaleElements(format) / kStepCols,
                                       32767 / (2 * kLargestInput * LargestCode(format)));

// Exact sums of a group: lanes are eight outputs.
template <int kRows, int kHalves>
struct BlockSums {
  __m256i lanes[kRows][kHalves];
};

// Codes with a sign, whose two products fill a word. `codes(step, half)` are four columns of eight
// outputs.
template <QuantFormat format, int kRows, int kHalves, class Codes>
HADAL_INLINE BlockSums<kRows, kHalves> SumSigned(const Codes& codes,
                                                 const char* const (&x)[kRows]) {
  constexpr int kSteps = ScaleElements(format) / kStepCols;
  const __m256i ones = _mm256_set1_epi16(1);
  BlockSums<kRows, kHalves> sums;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) sums.lanes[r][half] = _mm256_setzero_si256();
  }
#pragma GCC unroll 8
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      const __m256i w = codes(step, half), magnitude = _mm256_abs_epi8(w);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i signed_x = _mm256_sign_epi8(BroadcastWord(x[r] + kStepCols * step), w);
        const __m256i words = _mm256_maddubs_epi16(magnitude, signed_x);
        sums.lanes[r][half] = AddIntsNow(sums.lanes[r][half], _mm256_madd_epi16(words, ones));
      }
    }
  }
  return sums;
}

// Codes without sign. `sums_at` are the words that an offset takes.
template <QuantFormat format, int kRows, int kHalves, class Codes>
HADAL_INLINE BlockSums<kRows, kHalves> SumUnsigned(const Codes& codes,
                                                   const char* const (&x)[kRows],
                                                   const char* const (&sums_at)[kRows]) {
  constexpr int kSteps = ScaleElements(format) / kStepCols;
  constexpr int kWordSteps = kStepsPerWordSum<format>;
  static_assert(CodeOffset(format) == 0 || kWordSteps == kSteps);
  const __m256i ones = _mm256_set1_epi16(1);
  BlockSums<kRows, kHalves> sums;
#pragma GCC unroll 2
  for (int first = 0; first < kSteps; first += kWordSteps) {
    BlockSums<kRows, kHalves> words;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      __m256i start = _mm256_setzero_si256();
      if (CodeOffset(format) != 0) {
        start =
            _mm256_mullo_epi16(BroadcastWord(sums_at[r]), _mm256_set1_epi16(-CodeOffset(format)));
      }
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) words.lanes[r][half] = start;
    }
#pragma GCC unroll 8
    for (int step = first; step < first + kWordSteps; ++step) {
      __m256i w[kHalves];
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) w[half] = codes(step, half);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i xv = BroadcastWord(x[r] + kStepCols * step);
#pragma GCC unroll 2
        for (int half = 0; half < kHalves; ++half) {
          const __m256i term = _mm256_maddubs_epi16(w[half], xv);
          words.lanes[r][half] = AddWordsNow(words.lanes[r][half], term);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) {
        const __m256i sum = _mm256_madd_epi16(words.lanes[r][half], ones);
        sums.lanes[r][half] = first == 0 ? sum : _mm256_add_epi32(sums.lanes[r][half], sum);
      }
    }
  }
  return sums;
}

// The sums of group `part` of a run; `x` are the runs of the rows.
template <QuantFormat format, int kRows, int kHalves, int part, class Codes>
HADAL_INLINE BlockSums<kRows, kHalves> SumGroup(const Codes& codes, const char* const (&x)[kRows]) {
  const char *cols[kRows], *sums_at[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    cols[r] = x[r] + part * ScaleElements(format);
    sums_at[r] = x[r] + kRunSumsOffset + 4 * part;
  }
  if constexpr (HasSignedCodes(format)) {
    return SumSigned<format, kRows, kHalves>(codes, cols);
  } else {
    return SumUnsigned<format, kRows, kHalves>(codes, cols, sums_at);
  }
}

// total + a group's sums with their scale, and what its minimum brings. `x` is the run of the row.
template <QuantFormat format, int part>
HADAL_INLINE Vec AddToTotal(__m256i sums, Vec scale, Vec min, const char* x, Vec total) {
  const Vec x_scale = _mm256_castsi256_ps(BroadcastWord(x + kRunScaleOffset));
  total = MulAdd(_mm256_cvtepi32_ps(sums), Mul(scale, x_scale), total);
  if constexpr (UseOfMin(format) != MinUse::kNone) {
    const Vec x_sum = _mm256_castsi256_ps(BroadcastWord(x + kRunSumsOffset + 4 * part));
    total = UseOfMin(format) == MinUse::kAdd ? MulAdd(min, x_sum, total)
                                             : _mm256_fnmadd_ps(min, x_sum, total);
  }
  return total;
}

template <QuantFormat format>
constexpr int kParts = kRun / ScaleElements(format);

}  // namespace
}  // namespace hadal::avx2
