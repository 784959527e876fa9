// Rows of words from floats and from rows of the cache; kernel_table.h has the formula.
#include "kernels/avx512/parts.h"
#include "kernels/avx512/words.h"

namespace hadal::avx512 {
namespace {

constexpr int kLanes = 16;
constexpr int kGroupVectors = kCacheGroup / kLanes;

HADAL_INLINE void StoreScale(std::byte* row, int cols, int group, float scale) {
  __builtin_memcpy(row + WordScalesOffset(cols) + 4 * group, &scale, sizeof(scale));
}

void RoundWords(const float* x, int cols, int largest, std::byte* row) {
  for (int group = 0; group < NumCacheGroups(cols); ++group) {
    const int begin = group * kCacheGroup;
    __m512 values[kGroupVectors];
    __m512i bits = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int v = 0; v < kGroupVectors; ++v) {
      const int at = begin + v * kLanes;
      values[v] = _mm512_maskz_loadu_ps(FirstLanes(cols - at), x + at);
      bits = _mm512_max_epi32(bits, MagnitudeBits(values[v]));
    }
    const float magnitude = LargestOfBits(bits);
    const float factor = FactorOf(magnitude, largest);
    auto* words = reinterpret_cast<int16_t*>(row + 2 * begin);
#pragma GCC unroll 4
    for (int v = 0; v < kGroupVectors; ++v) {
      StoreWords(_mm512_mul_ps(values[v], _mm512_set1_ps(factor)), words + v * kLanes);
    }
    StoreScale(row, cols, group, ScaleFor(magnitude, largest));
  }
}

void StoreQ16(const float* x, int cols, std::byte* row) { RoundWords(x, cols, kLargestWord, row); }

void LoadF32(const std::byte* row, int cols, std::byte* word_row) {
  RoundWords(reinterpret_cast<const float*>(row), cols, kLargestWord, word_row);
}

// What a group of bf16 is divided and multiplied by: a power of two, so that no value that is at
// least a sixteenth of the largest is rounded.
struct Rounding {
  float scale, factor;
};
HADAL_INLINE Rounding RoundingOfBf16(uint32_t largest_bits) {
  const float magnitude = FloatOfBits(largest_bits << 16);
  const uint32_t exponent = largest_bits >> 7;
  if (magnitude < 1e-30f) return {0.0f, 0.0f};
  if (exponent == 255) return {magnitude, 0.0f};
  return {FloatOfBits((exponent - 11) << 23), FloatOfBits((265 - exponent) << 23)};
}

// The largest of 32 words without sign.
HADAL_INLINE uint32_t LargestWordOf(__m512i words) {
  const __m256i half =
      _mm256_max_epu16(_mm512_castsi512_si256(words), _mm512_extracti64x4_epi64(words, 1));
  const __m128i quarter =
      _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  const __m128i inverse = _mm_xor_si128(quarter, _mm_set1_epi16(-1));
  return 0xFFFFu & ~static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(inverse)));
}

// The first `count` of a group of bf16, zeros behind.
HADAL_INLINE void LoadBf16Group(const std::byte* from, int count, int16_t* words, float* scale) {
  const auto* bits = reinterpret_cast<const int16_t*>(from);
  const auto lanes_of = [count](int first) {
    const int n = count - first;
    return n >= 32 ? ~__mmask32{0} : static_cast<__mmask32>(n <= 0 ? 0 : (int64_t{1} << n) - 1);
  };
  const __m512i halves[2] = {_mm512_maskz_loadu_epi16(lanes_of(0), bits),
                             _mm512_maskz_loadu_epi16(lanes_of(32), bits + 32)};
  const __m512i no_sign = _mm512_set1_epi16(0x7FFF);
  const Rounding rounding = RoundingOfBf16(LargestWordOf(_mm512_max_epu16(
      _mm512_and_si512(halves[0], no_sign), _mm512_and_si512(halves[1], no_sign))));
  const __m512 factor = _mm512_set1_ps(rounding.factor);
  // Interleaving with zeros makes floats, in an order of which packing is the inverse.
  const auto ints_of = [factor](__m512i floats) {
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(floats), factor));
  };
  const __m512i zero = _mm512_setzero_si512();
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512i low = ints_of(_mm512_unpacklo_epi16(zero, halves[half]));
    const __m512i high = ints_of(_mm512_unpackhi_epi16(zero, halves[half]));
    _mm512_storeu_si512(words + 32 * half, _mm512_packs_epi32(low, high));
  }
  __builtin_memcpy(scale, &rounding.scale, sizeof(*scale));
}

void LoadBf16(const std::byte* row, int cols, std::byte* word_row) {
  auto* words = reinterpret_cast<int16_t*>(word_row);
  auto* scales = reinterpret_cast<float*>(word_row + WordScalesOffset(cols));
  for (int group = 0; group < NumCacheGroups(cols); ++group) {
    const int begin = group * kCacheGroup;
    LoadBf16Group(row + 2 * begin, cols - begin, words + begin, scales + group);
  }
}

void LoadQ8(const std::byte* row, int cols, std::byte* word_row) {
  auto* words = reinterpret_cast<int16_t*>(word_row);
  for (int i = 0; i < NumCacheGroups(cols) * kCacheGroup; i += 32) {
    const int n = cols - i;
    const auto lanes =
        n >= 32 ? ~__mmask32{0} : static_cast<__mmask32>(n <= 0 ? 0 : (int64_t{1} << n) - 1);
    const __m256i codes = _mm256_maskz_loadu_epi8(lanes, row + i);
    _mm512_storeu_si512(words + i, _mm512_cvtepi8_epi16(codes));
  }
  __builtin_memcpy(word_row + WordScalesOffset(cols), row + (cols + 3) / 4 * 4,
                   4 * static_cast<unsigned long>(NumCacheGroups(cols)));
}

}  // namespace

void AddWordRows(KernelTable* table) {
  table->round_words = RoundWords;
  table->store_cache_row[static_cast<int>(CacheType::kQ16)] = StoreQ16;
  table->load_cache_words[static_cast<int>(CacheType::kF32)] = LoadF32;
  table->load_cache_words[static_cast<int>(CacheType::kBF16)] = LoadBf16;
  table->load_cache_words[static_cast<int>(CacheType::kQ8)] = LoadQ8;
}

}  // namespace hadal::avx512
