// Grouped weights in registers: sixteen outputs and four columns at a time, in the order of
// block_layout.h, so that nothing is shuffled. The sums inside a group are exact, so it does not
// matter in which order and width they are formed.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/ints.h"
#include "kernels/avx2/vec.h"
#include "kernels/kernel_table.h"

namespace hadal::avx2 {
namespace {

// Scales and zero points of a group, outputs 0 to 7 and 8 to 15.
struct GroupScales {
  Vec scale[2];
  __m256i minus_zero[2];  // kInt4Group: twice per output, in words
};

template <bool kZeros>
HADAL_INLINE GroupScales LoadScales(const char* scales) {
  GroupScales group;
  for (int half = 0; half < 2; ++half) {
    const auto* bits = reinterpret_cast<const __m128i*>(scales + 16 * half);
    group.scale[half] = _mm256_cvtph_ps(_mm_loadu_si128(bits));
  }
  if (kZeros) {
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + 32));
    const __m256i wide = _mm256_cvtepu8_epi32(pairs);
    const __m256i zero[2] = {_mm256_and_si256(wide, _mm256_set1_epi32(15)),
                             _mm256_srli_epi32(wide, 4)};
    for (int half = 0; half < 2; ++half) {
      const __m256i twice = _mm256_or_si256(zero[half], _mm256_slli_epi32(zero[half], 16));
      group.minus_zero[half] = _mm256_sub_epi16(_mm256_setzero_si256(), twice);
    }
  } else {
    group.minus_zero[0] = group.minus_zero[1] = _mm256_set1_epi16(-8);
  }
  return group;
}

// Rounded rows, of which each product reads one stream: a chain of blocks, one per group.
// For kInt4Group a block holds the codes as bytes, for every 32 columns two words, the sums of the
// codes whose column % 4 is 0 or 1 and 2 or 3, and the scale. For kInt8Group it holds the codes as
// words, columns 0, 2, 1, 3 of every four, and the scale.
constexpr int SumsOffset(int group_cols) { return group_cols; }
constexpr int ScaleOffset(QuantFormat format, int group_cols) {
  return format == QuantFormat::kInt4Group ? group_cols + group_cols / 8 : 2 * group_cols;
}
constexpr int RoundedBlockBytes(QuantFormat format, int group_cols) {
  return ScaleOffset(format, group_cols) + 4;
}

// Codes of one step as products want them.
template <QuantFormat format>
struct Step;

template <>
struct Step<QuantFormat::kInt4Group> {
  __m256i half[2];  // bytes 0 .. 15 of outputs 0 to 7, and 8 to 15
};
template <>
struct Step<QuantFormat::kInt8Group> {
  // Words: columns 0 and 2 of outputs 0 to 7, then 1 and 3; the same of outputs 8 to 15.
  __m256i even[2], odd[2];
};

// From the stored bytes.
struct StoredSteps4 {
  const char* codes;
  HADAL_INLINE Step<QuantFormat::kInt4Group> Load(int step) const {
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i pairs = LoadInts(codes + 32 * step);
    return {{_mm256_and_si256(pairs, low), _mm256_and_si256(_mm256_srli_epi16(pairs, 4), low)}};
  }
};
struct StoredSteps8 {
  const char* codes;
  HADAL_INLINE Step<QuantFormat::kInt8Group> Load(int step) const {
    Step<QuantFormat::kInt8Group> result;
    for (int half = 0; half < 2; ++half) {
      const __m256i bytes = LoadInts(codes + 64 * step + 32 * half);
      result.even[half] = _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8);
      result.odd[half] = _mm256_srai_epi16(bytes, 8);
    }
    return result;
  }
};

// From a panel, where Unpack() put them.
struct PanelSteps4 {
  const char* codes;
  HADAL_INLINE Step<QuantFormat::kInt4Group> Load(int step) const {
    return {{LoadInts(codes + 64 * step), LoadInts(codes + 64 * step + 32)}};
  }
};
struct PanelSteps8 {
  const char* codes;
  HADAL_INLINE Step<QuantFormat::kInt8Group> Load(int step) const {
    const char* p = codes + 128 * step;
    return {{LoadInts(p), LoadInts(p + 32)}, {LoadInts(p + 64), LoadInts(p + 96)}};
  }
};

HADAL_INLINE void Unpack(const Step<QuantFormat::kInt4Group>& step, char* to) {
  for (int half = 0; half < 2; ++half) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + 32 * half), step.half[half]);
  }
}
HADAL_INLINE void Unpack(const Step<QuantFormat::kInt8Group>& step, char* to) {
  for (int half = 0; half < 2; ++half) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + 32 * half), step.even[half]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + 64 + 32 * half), step.odd[half]);
  }
}

template <QuantFormat format>
struct StepSources;
template <>
struct StepSources<QuantFormat::kInt4Group> {
  using Stored = StoredSteps4;
  using Panel = PanelSteps4;
  static constexpr int kPanelBytes = 64;  // of a step
};
template <>
struct StepSources<QuantFormat::kInt8Group> {
  using Stored = StoredSteps8;
  using Panel = PanelSteps8;
  static constexpr int kPanelBytes = 128;
};

// Exact sums of one group: lanes are outputs 0 to 7 and 8 to 15.
template <int kRows>
struct GroupSums {
  __m256i lanes[kRows][2];
};

// Sums of the 32 columns from `col` on, in words: |sum of (code - zero) * x| <= 15 * 16 * 127 <
// 2^15 for each of the two of an output, and what overflows on the way wraps back.
template <int kRows, bool kZeros, class Steps>
HADAL_INLINE GroupSums<kRows> SumWords(const Steps& steps, int group_cols, int col,
                                       const GroupScales& scales, const char* const (&x)[kRows]) {
  GroupSums<kRows> words;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m256i pair = BroadcastWord(x[r] + SumsOffset(group_cols) + col / 8);
    words.lanes[r][0] = _mm256_mullo_epi16(pair, scales.minus_zero[0]);
    words.lanes[r][1] = kZeros ? _mm256_mullo_epi16(pair, scales.minus_zero[1]) : words.lanes[r][0];
  }
#pragma GCC unroll 8
  for (int step = 0; step < 8; ++step) {
    const Step<QuantFormat::kInt4Group> w = steps.Load(col / 4 + step);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i xv = BroadcastWord(x[r] + col + 4 * step);
      words.lanes[r][0] = AddWordsNow(words.lanes[r][0], _mm256_maddubs_epi16(w.half[0], xv));
      words.lanes[r][1] = AddWordsNow(words.lanes[r][1], _mm256_maddubs_epi16(w.half[1], xv));
    }
  }
  return words;
}

template <QuantFormat format, bool kZeros>
struct GroupProduct;

template <bool kZeros>
struct GroupProduct<QuantFormat::kInt4Group, kZeros> {
  template <int kRows, class Steps>
  HADAL_INLINE static GroupSums<kRows> Sum(const Steps& steps, int group_cols,
                                           const GroupScales& scales,
                                           const char* const (&x)[kRows]) {
    const __m256i ones = _mm256_set1_epi16(1);
    GroupSums<kRows> sums = SumWords<kRows, kZeros>(steps, group_cols, 0, scales, x);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sums.lanes[r][0] = _mm256_madd_epi16(sums.lanes[r][0], ones);
      sums.lanes[r][1] = _mm256_madd_epi16(sums.lanes[r][1], ones);
    }
    for (int col = 32; col < group_cols; col += 32) {
      const GroupSums<kRows> words = SumWords<kRows, kZeros>(steps, group_cols, col, scales, x);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          sums.lanes[r][half] =
              _mm256_add_epi32(sums.lanes[r][half], _mm256_madd_epi16(words.lanes[r][half], ones));
        }
      }
    }
    return sums;
  }
};

template <bool kZeros>
struct GroupProduct<QuantFormat::kInt8Group, kZeros> {
  template <int kRows, class Steps>
  HADAL_INLINE static GroupSums<kRows> Sum(const Steps& steps, int group_cols, const GroupScales&,
                                           const char* const (&x)[kRows]) {
    GroupSums<kRows> sums;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums.lanes[r][0] = sums.lanes[r][1] = _mm256_setzero_si256();
    for (int step = 0; step < group_cols / kStepCols; ++step) {
      const Step<QuantFormat::kInt8Group> w = steps.Load(step);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i even = BroadcastWord(x[r] + 8 * step);
        const __m256i odd = BroadcastWord(x[r] + 8 * step + 4);
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          __m256i* sum = &sums.lanes[r][half];
          *sum = AddIntsNow(*sum, _mm256_madd_epi16(w.even[half], even));
          *sum = AddIntsNow(*sum, _mm256_madd_epi16(w.odd[half], odd));
        }
      }
    }
    return sums;
  }
};

// totals[r] [16] = fma(group's sum, weight scale * x scale, totals[r]).
template <int kRows>
HADAL_INLINE void AddToTotals(const GroupSums<kRows>& sums, const GroupScales& scales,
                              int scale_offset, const char* const (&x)[kRows], float* totals) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const Vec x_scale = _mm256_castsi256_ps(BroadcastWord(x[r] + scale_offset));
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      float* at = totals + r * kTileRows + 8 * half;
      const Vec sum = _mm256_cvtepi32_ps(sums.lanes[r][half]);
      _mm256_store_ps(at, MulAdd(sum, Mul(scales.scale[half], x_scale), _mm256_load_ps(at)));
    }
  }
}

// One group of kRows rows against sixteen outputs; moves x on to the next group.
template <QuantFormat format, bool kZeros, int kRows, class Steps>
HADAL_INLINE void AddGroup(const Steps& steps, int group_cols, const GroupScales& scales,
                           const char* (&x)[kRows], float* totals) {
  const GroupSums<kRows> sums =
      GroupProduct<format, kZeros>::template Sum<kRows>(steps, group_cols, scales, x);
  AddToTotals<kRows>(sums, scales, ScaleOffset(format, group_cols), x, totals);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) x[r] += RoundedBlockBytes(format, group_cols);
}

}  // namespace
}  // namespace hadal::avx2
