// Blocks of eight outputs, turned so that a vector register takes four columns of all eight, as
// grouped.h has them, and the rows that meet them.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/blocks.h"
#include "kernels/avx2/ints.h"
#include "kernels/kernel_table.h"

namespace hadal::avx2 {
namespace {

constexpr int kStepsPerRun = kRun / kStepCols;
constexpr int kRegisterBytes = 32;

// A rounded row that meets a blocked weight: for every 32 columns their codes as bytes, the scale,
// and two sums, of each half for types with a scale for 16 columns, else the first of all 32. They
// are what corrects an offset or a minimum: for types with an offset two words, the sums of the
// codes whose column % 4 is 0 or 1 and 2 or 3; for the others a float, the sum times the scale.
constexpr int kRunScaleOffset = kRun;
constexpr int kRunSumsOffset = kRun + 4;
constexpr int kRoundedRunBytes = kRun + 12;

// Where eight outputs are.
struct EightRows {
  const char* first;
  int64_t stride;

  HADAL_INLINE const char* At(int o) const { return first + o * stride; }
  HADAL_INLINE EightRows Plus(int64_t bytes) const { return {first + bytes, stride}; }
};

// Sixteen bytes of each row: lane o of turned[k] has bytes 4 k to 4 k + 3 of row o.
struct Turned {
  __m256i word[4];
};
HADAL_INLINE Turned Turn(const EightRows& rows, int offset) {
  __m256i pair[4];
#pragma GCC unroll 4
  for (int o = 0; o < 4; ++o) {
    pair[o] =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(At128(rows.At(o) + offset))),
                                _mm_loadu_si128(At128(rows.At(o + 4) + offset)), 1);
  }
  const __m256i low01 = _mm256_unpacklo_epi32(pair[0], pair[1]);
  const __m256i high01 = _mm256_unpackhi_epi32(pair[0], pair[1]);
  const __m256i low23 = _mm256_unpacklo_epi32(pair[2], pair[3]);
  const __m256i high23 = _mm256_unpackhi_epi32(pair[2], pair[3]);
  return {{_mm256_unpacklo_epi64(low01, low23), _mm256_unpackhi_epi64(low01, low23),
           _mm256_unpacklo_epi64(high01, high23), _mm256_unpackhi_epi64(high01, high23)}};
}

// Four bytes of each row.
HADAL_INLINE __m256i WordOfEach(const EightRows& rows, int offset) {
  return _mm256_setr_epi32(static_cast<int32_t>(WordAt(rows.At(0) + offset)),
                           static_cast<int32_t>(WordAt(rows.At(1) + offset)),
                           static_cast<int32_t>(WordAt(rows.At(2) + offset)),
                           static_cast<int32_t>(WordAt(rows.At(3) + offset)),
                           static_cast<int32_t>(WordAt(rows.At(4) + offset)),
                           static_cast<int32_t>(WordAt(rows.At(5) + offset)),
                           static_cast<int32_t>(WordAt(rows.At(6) + offset)),
                           static_cast<int32_t>(WordAt(rows.At(7) + offset)));
}

HADAL_INLINE int16_t HalfAt(const char* p) {
  int16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return bits;
}
HADAL_INLINE Vec HalfOfEach(const EightRows& rows, int offset) {
  return _mm256_cvtph_ps(_mm_setr_epi16(HalfAt(rows.At(0) + offset), HalfAt(rows.At(1) + offset),
                                        HalfAt(rows.At(2) + offset), HalfAt(rows.At(3) + offset),
                                        HalfAt(rows.At(4) + offset), HalfAt(rows.At(5) + offset),
                                        HalfAt(rows.At(6) + offset), HalfAt(rows.At(7) + offset)));
}

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
template <QuantFormat format>
class TurnedBlock {
 public:
  static constexpr int kRuns = SizeOfBlock(format).elements / kRun;
  static constexpr int kGroups = SizeOfBlock(format).elements / ScaleElements(format);

  HADAL_INLINE explicit TurnedBlock(const EightRows& rows) : rows_(rows) { LoadScales(); }

  // To be called for each run before its codes are asked for.
  template <int run>
  HADAL_INLINE void Start() {
    if constexpr (format == QuantFormat::kQ8_0) {
      const Turned low = Turn(rows_, 2), high = Turn(rows_, 18);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        codes_[k] = low.word[k];
        codes_[4 + k] = high.word[k];
      }
    } else if constexpr (HasAreas(format)) {
      TurnAreas<run>();
    } else {
      const Turned pairs = Turn(rows_, NibblesBegin(format, run));
      const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        codes_[k] = _mm256_and_si256(pairs.word[k], mask);
        codes_[4 + k] = _mm256_and_si256(_mm256_srli_epi16(pairs.word[k], 4), mask);
      }
      if constexpr (format == QuantFormat::kQ5_0 || format == QuantFormat::kQ5_1) {
        AddHighBits<0>(WordOfEach(rows_, NibblesBegin(format, run) - 4));
      }
    }
  }

  // Four columns of a run, as LoadStoredCodes() has them.
  template <int run>
  HADAL_INLINE __m256i Codes(int step) const {
    if constexpr (HasAreas(format)) {
      return LoadStoredCodes<format, run, 8>(turned_ + kRegisterBytes * step);
    } else if constexpr (format == QuantFormat::kIq4Nl || format == QuantFormat::kIq4Xs) {
      return NonLinear(codes_[step]);
    } else {
      return codes_[step];
    }
  }

  template <int group>
  HADAL_INLINE Vec Scale() const {
    if constexpr (HasSubScales(format)) {
      return ScaledByte<group % 4>(scale_words_[group / 4], factors_[0]);
    } else if constexpr (format == QuantFormat::kQ6_K) {
      return ScaledSignedByte<group % 4>(scale_words_[group / 4], factors_[0]);
    } else {
      return scales_[group];
    }
  }
  template <int group>
  HADAL_INLINE Vec Min() const {
    if constexpr (HasSubScales(format)) {
      return ScaledByte<group % 4>(min_words_[group / 4], factors_[1]);
    } else {
      return mins_[group];
    }
  }

 private:
  // Q4_K and Q5_K, whose head is the same.
  static constexpr bool HasSubScales(QuantFormat f) {
    return f == QuantFormat::kQ4_K || f == QuantFormat::kQ5_K;
  }

  HADAL_INLINE void LoadScales() {
    if constexpr (kRuns == 1) {
      scales_[0] = HalfOfEach(rows_, 0);
      if constexpr (UseOfMin(format) != MinUse::kNone) mins_[0] = HalfOfEach(rows_, 2);
    } else if constexpr (HasSubScales(format)) {
      const Turned head = Turn(rows_, 0);
      const __m256i a = head.word[1], b = head.word[2], c = head.word[3];
      const __m256i six = _mm256_set1_epi32(0x3F3F3F3F), four = _mm256_set1_epi32(0x0F0F0F0F);
      const __m256i two = _mm256_set1_epi32(0x30303030);
      const __m256i a_top = _mm256_and_si256(_mm256_srli_epi32(a, 2), two);
      const __m256i b_top = _mm256_and_si256(_mm256_srli_epi32(b, 2), two);
      factors_[0] = LowHalves(head.word[0]);
      factors_[1] = LowHalves(_mm256_srli_epi32(head.word[0], 16));
      scale_words_[0] = _mm256_and_si256(a, six);
      scale_words_[1] = _mm256_or_si256(_mm256_and_si256(c, four), a_top);
      min_words_[0] = _mm256_and_si256(b, six);
      min_words_[1] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(c, 4), four), b_top);
    } else if constexpr (format == QuantFormat::kQ6_K) {
      const Turned scales = Turn(rows_, 192);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) scale_words_[k] = scales.word[k];
      factors_[0] = HalfOfEach(rows_, 208);
    } else {
      LoadScalesOfEach();
    }
  }

  // Scales formed output by output, then turned.
  HADAL_INLINE void LoadScalesOfEach() {
    BlockScales each[8];
    for (int o = 0; o < 8; ++o) LoadBlockScales<format>(rows_.At(o), &each[o]);
    const EightRows scales = {reinterpret_cast<const char*>(each[0].scale), sizeof(BlockScales)};
    const EightRows mins = {reinterpret_cast<const char*>(each[0].min), sizeof(BlockScales)};
#pragma GCC unroll 4
    for (int group = 0; group < kGroups; group += 4) {
      TurnFloats(scales, group, scales_);
      if constexpr (UseOfMin(format) != MinUse::kNone) TurnFloats(mins, group, mins_);
    }
  }
  HADAL_INLINE static void TurnFloats(const EightRows& floats, int first, Vec* to) {
    const Turned turned = Turn(floats, 4 * first);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) to[first + k] = _mm256_castsi256_ps(turned.word[k]);
  }

  // Areas are turned as they are; an element of any of the eight outputs then takes its bits as in
  // a block that is eight times as wide. An area is turned with the first run that takes from it.
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
      const Turned words = Turn(rows_, offset + 16 * part);
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

  EightRows rows_;
  Vec factors_[2];
  __m256i scale_words_[4], min_words_[2];
  Vec scales_[kGroups], mins_[kGroups];
  __m256i codes_[kStepsPerRun];
  alignas(32) char turned_[HasAreas(format) ? 8 * AreasEnd(format) : 1];
};

}  // namespace
}  // namespace hadal::avx2
