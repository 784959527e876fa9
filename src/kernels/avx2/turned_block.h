// A block of eight outputs in registers, each of which has four columns of all eight, as grouped.h
// has them.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/blocks.h"
#include "kernels/avx2/eight_rows.h"
#include "kernels/avx2/ints.h"
#include "kernels/kernel_table.h"

namespace hadal::avx2 {
namespace {

constexpr int kStepsPerRun = kRun / kStepCols;
constexpr int kRegisterBytes = 32;

// The halves in the lower words of lanes.
HADAL_INLINE Vec LowHalves(__m256i words) {
  const __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xFFFF));
  const __m256i packed = _mm256_packus_epi32(low, low);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

// Byte k of each lane, without sign and with one, times a float of the lane.
template <int k>
HADAL_INLINE Vec ScaledByte(__m256i words, Vec factor) {
  __m256i byte = _mm256_srli_epi32(words, 8 * k);
  if (k < 3) byte = _mm256_and_si256(byte, _mm256_set1_epi32(255));
  return Mul(factor, _mm256_cvtepi32_ps(byte));
}
template <int k>
HADAL_INLINE Vec ScaledSignedByte(__m256i words, Vec factor) {
  const __m256i byte = _mm256_srai_epi32(_mm256_slli_epi32(words, 24 - 8 * k), 24);
  return Mul(factor, _mm256_cvtepi32_ps(byte));
}

// Types of 256 columns in areas of 32 bytes, of which an element takes bits at its own place.
constexpr bool HasAreas(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ2_K:
    case QuantFormat::kQ3_K:
    case QuantFormat::kQ4_K:
    case QuantFormat::kQ5_K:
    case QuantFormat::kQ6_K:
      return true;
    default:
      return false;
  }
}
// Bytes of a block up to the end of these areas.
constexpr int AreasEnd(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ2_K:
      return 80;
    case QuantFormat::kQ3_K:
      return 96;
    case QuantFormat::kQ4_K:
      return 144;
    case QuantFormat::kQ5_K:
      return 176;
    default:
      return 192;
  }
}

// Where the sixteen bytes of a run's nibbles begin in a block, for types that have such.
constexpr int NibblesBegin(QuantFormat format, int run) {
  switch (format) {
    case QuantFormat::kQ4_1:
      return 4;
    case QuantFormat::kQ5_0:
      return 6;
    case QuantFormat::kQ5_1:
      return 8;
    case QuantFormat::kIq4Xs:
      return 8 + 16 * run;
    default:
      return 2;
  }
}

// `value` in the bytes of four columns whose bit of the lane's word is set.
template <int step>
HADAL_INLINE __m256i WhereBitsAreSet(__m256i words, int value) {
  constexpr int kByte = step / 2;
  const __m256i places = _mm256_add_epi8(_mm256_set1_epi8(kByte),
                                         _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C, 0,
                                                           0x04040404, 0x08080808, 0x0C0C0C0C));
  const __m256i bits = _mm256_set1_epi32(step % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010));
  const __m256i mine = _mm256_and_si256(_mm256_shuffle_epi8(words, places), bits);
  return _mm256_and_si256(_mm256_cmpeq_epi8(mine, bits),
                          _mm256_set1_epi8(static_cast<char>(value)));
}

// One block of eight outputs. Everything is unrolled, so that most of it stays in registers.
template <QuantFormat format, class Rows>
class TurnedBlock {
 public:
  static constexpr int kRuns = SizeOfBlock(format).elements / kRun;

  HADAL_INLINE explicit TurnedBlock(const Rows& rows) : rows_(rows) { LoadScales(); }

  // To be called for each run before its codes are asked for.
  template <int run>
  HADAL_INLINE void Start() {
    if constexpr (HasAreas(format)) {
      if constexpr (!Rows::kIsTurned) TurnAreas<run>();
    } else if constexpr (format == QuantFormat::kQ8_0) {
      const FourWords low = rows_.Words(2), high = rows_.Words(18);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        codes_[k] = low.word[k];
        codes_[4 + k] = high.word[k];
      }
    } else {
      const FourWords pairs = rows_.Words(NibblesBegin(format, run));
      const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        codes_[k] = _mm256_and_si256(pairs.word[k], mask);
        codes_[4 + k] = _mm256_and_si256(_mm256_srli_epi16(pairs.word[k], 4), mask);
      }
      if constexpr (format == QuantFormat::kQ5_0 || format == QuantFormat::kQ5_1) {
        AddHighBits<0>(rows_.Word(NibblesBegin(format, run) - 4));
      }
    }
  }

  // Four columns of a run, as LoadStoredCodes() has them.
  template <int run>
  HADAL_INLINE __m256i Codes(int step) const {
    if constexpr (HasAreas(format)) {
      // Turned areas: an element of any of the eight outputs takes its bits as in a block that is
      // eight times as wide.
      const char* areas = turned_;
      if constexpr (Rows::kIsTurned) areas = rows_.At(0);
      return LoadStoredCodes<format, run, 8>(areas + kRegisterBytes * step);
    } else if constexpr (format == QuantFormat::kIq4Nl || format == QuantFormat::kIq4Xs) {
      return NonLinear(codes_[step]);
    } else {
      return codes_[step];
    }
  }

  template <int group>
  HADAL_INLINE Vec Scale() const {
    using F = QuantFormat;
    if constexpr (kRuns == 1) {
      return scale_;
    } else if constexpr (format == F::kIq4Xs) {
      // Four bits of a word, and two of a short; less 32.
      const __m256i low = _mm256_srli_epi32(scale_words_[0], 4 * group);
      const __m256i high = _mm256_slli_epi32(_mm256_srli_epi32(scale_words_[1], 2 * group), 4);
      const __m256i code = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                           _mm256_and_si256(high, _mm256_set1_epi32(48)));
      return Mul(scale_, _mm256_cvtepi32_ps(_mm256_sub_epi32(code, _mm256_set1_epi32(32))));
    } else if constexpr (format == F::kQ3_K || format == F::kQ6_K) {
      return ScaledSignedByte<group % 4>(scale_words_[group / 4], scale_);
    } else {
      return ScaledByte<group % 4>(scale_words_[group / 4], scale_);
    }
  }
  template <int group>
  HADAL_INLINE Vec Min() const {
    if constexpr (kRuns == 1) {
      return min_;
    } else {
      return ScaledByte<group % 4>(min_words_[group / 4], min_);
    }
  }

 private:
  HADAL_INLINE void LoadScales() {
    using F = QuantFormat;
    if constexpr (format == F::kQ4_K || format == F::kQ5_K) {
      const FourWords head = rows_.Words(0);
      const __m256i a = head.word[1], b = head.word[2], c = head.word[3];
      const __m256i six = _mm256_set1_epi32(0x3F3F3F3F), two = _mm256_set1_epi32(0x30303030);
      scale_ = LowHalves(head.word[0]);
      min_ = LowHalves(_mm256_srli_epi32(head.word[0], 16));
      scale_words_[0] = _mm256_and_si256(a, six);
      scale_words_[1] = _mm256_or_si256(LowNibbles(c, 0), Masked(_mm256_srli_epi32(a, 2), two));
      min_words_[0] = _mm256_and_si256(b, six);
      min_words_[1] = _mm256_or_si256(LowNibbles(c, 4), Masked(_mm256_srli_epi32(b, 2), two));
    } else if constexpr (format == F::kQ6_K) {
      TakeScaleWords(rows_.Words(192));
      scale_ = _mm256_cvtph_ps(rows_.Shorts(208));
    } else if constexpr (format == F::kQ3_K) {
      // Low halves of sixteen scales in two words, two more bits of each in a third; less 32.
      const __m256i a = rows_.Word(96), b = rows_.Word(100), high = rows_.Word(104);
      const __m256i two = _mm256_set1_epi32(0x30303030);
      const __m256i words[4] = {
          _mm256_or_si256(LowNibbles(a, 0), Masked(_mm256_slli_epi32(high, 4), two)),
          _mm256_or_si256(LowNibbles(b, 0), Masked(_mm256_slli_epi32(high, 2), two)),
          _mm256_or_si256(LowNibbles(a, 4), Masked(high, two)),
          _mm256_or_si256(LowNibbles(b, 4), Masked(_mm256_srli_epi32(high, 2), two))};
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) scale_words_[k] = MinusEach(words[k], 32);
      scale_ = _mm256_cvtph_ps(rows_.Shorts(108));
    } else if constexpr (format == F::kQ2_K) {
      const FourWords both = rows_.Words(0);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        scale_words_[k] = LowNibbles(both.word[k], 0);
        min_words_[k] = LowNibbles(both.word[k], 4);
      }
      scale_ = _mm256_cvtph_ps(rows_.Shorts(80));
      min_ = _mm256_cvtph_ps(rows_.Shorts(82));
    } else {
      scale_ = _mm256_cvtph_ps(rows_.Shorts(0));
      if constexpr (format == F::kIq4Xs) {
        scale_words_[0] = rows_.Word(4);
        scale_words_[1] = _mm256_cvtepu16_epi32(rows_.Shorts(2));
      } else if constexpr (UseOfMin(format) != MinUse::kNone) {
        min_ = _mm256_cvtph_ps(rows_.Shorts(2));
      }
    }
  }
  HADAL_INLINE void TakeScaleWords(const FourWords& words) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) scale_words_[k] = words.word[k];
  }
  HADAL_INLINE static __m256i Masked(__m256i words, __m256i mask) {
    return _mm256_and_si256(words, mask);
  }
  // Four bits of each byte, from `shift` on.
  HADAL_INLINE static __m256i LowNibbles(__m256i words, int shift) {
    return Masked(_mm256_srli_epi32(words, shift), _mm256_set1_epi8(15));
  }

  // An area is turned with the first run that takes from it.
  template <int run>
  HADAL_INLINE void TurnAreas() {
    using F = QuantFormat;
    if constexpr (format == F::kQ4_K || format == F::kQ5_K) {
      if constexpr (format == F::kQ5_K && run == 0) TurnArea<16>();
      if constexpr (run % 2 == 0) TurnArea<AreasEnd(format) - 128 + 32 * (run / 2)>();
    } else if constexpr (run % 4 == 0) {
      constexpr int kHalf = run / 4;
      if constexpr (format == F::kQ6_K) {
        TurnArea<64 * kHalf>();
        TurnArea<64 * kHalf + 32>();
        TurnArea<128 + 32 * kHalf>();
      } else {
        if constexpr (format == F::kQ3_K && run == 0) TurnArea<0>();
        TurnArea<AreasEnd(format) - 64 + 32 * kHalf>();
      }
    }
  }
  template <int offset>
  HADAL_INLINE void TurnArea() {
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      const FourWords words = rows_.Words(offset + 16 * part);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        char* to = turned_ + 8 * offset + kRegisterBytes * (4 * part + k);
        _mm256_store_si256(reinterpret_cast<__m256i*>(to), words.word[k]);
      }
    }
  }

  template <int step>
  HADAL_INLINE void AddHighBits(__m256i words) {
    if constexpr (step < kStepsPerRun) {
      codes_[step] = _mm256_or_si256(codes_[step], WhereBitsAreSet<step>(words, 16));
      AddHighBits<step + 1>(words);
    }
  }

  Rows rows_;
  Vec scale_, min_;  // of blocks of 32 columns their own, else what multiplies those of groups
  __m256i scale_words_[4], min_words_[4];
  __m256i codes_[kStepsPerRun];
  alignas(32) char turned_[HasAreas(format) && !Rows::kIsTurned ? 8 * AreasEnd(format) : 1];
};

}  // namespace
}  // namespace hadal::avx2
