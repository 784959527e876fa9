// Rows of words from floats and from rows of the cache; kernel_table.h has the formula.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/vec.h"
#include "kernels/avx2/words.h"

namespace hadal::avx2 {
namespace {

inline void StoreScale(std::byte* row, int cols, int group, float scale) {
  __builtin_memcpy(row + WordScalesOffset(cols) + 4 * group, &scale, sizeof(scale));
}

void RoundWords(const float* x, int cols, int largest, std::byte* row) {
  for (int group = 0; group < NumCacheGroups(cols); ++group) {
    const int begin = group * kCacheGroup;
    const int count = cols - begin < kCacheGroup ? cols - begin : kCacheGroup;
    auto* words = reinterpret_cast<int16_t*>(row + 2 * begin);
    StoreScale(row, cols, group, RoundGroup(x + begin, count, largest, words));
  }
}

void StoreQ16(const float* x, int cols, std::byte* row) { RoundWords(x, cols, kLargestWord, row); }

void LoadF32(const std::byte* row, int cols, std::byte* word_row) {
  RoundWords(reinterpret_cast<const float*>(row), cols, kLargestWord, word_row);
}

// The largest of sixteen words without sign.
inline uint32_t LargestWordOf(__m256i words) {
  const __m128i larger =
      _mm_max_epu16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  const __m128i inverse = _mm_xor_si128(larger, _mm_set1_epi16(-1));
  return 0xFFFFu & ~static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(inverse)));
}

inline float FloatOfBits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// What a group of bf16 is divided and multiplied by: a power of two, so that no value that is at
// least a sixteenth of the largest is rounded.
inline Rounding RoundingOfBf16(uint32_t largest_bits) {
  const float magnitude = FloatOfBits(largest_bits << 16);
  const uint32_t exponent = largest_bits >> 7;
  if (magnitude < 1e-30f) return {0.0f, 0.0f};
  if (exponent == 255) return {magnitude, 0.0f};
  return {FloatOfBits((exponent - 11) << 23), FloatOfBits((265 - exponent) << 23)};
}

// Sixteen words of a group of bf16.
inline __m256i WordsOfBf16(__m256i bits, Vec factor) {
  __m256i halves[2];
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m128i eight =
        half == 0 ? _mm256_castsi256_si128(bits) : _mm256_extracti128_si256(bits, 1);
    const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16);
    halves[half] = _mm256_cvtps_epi32(Mul(_mm256_castsi256_ps(wide), factor));
  }
  return PackWords(halves[0], halves[1]);
}

void LoadBf16Group(const std::byte* from, int16_t* words, float* scale) {
  __m256i bits[4];
  __m256i magnitudes = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    bits[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32 * i));
    magnitudes = _mm256_max_epu16(magnitudes, _mm256_and_si256(bits[i], _mm256_set1_epi16(0x7FFF)));
  }
  const Rounding rounding = RoundingOfBf16(LargestWordOf(magnitudes));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + 16 * i),
                        WordsOfBf16(bits[i], Set(rounding.factor)));
  }
  __builtin_memcpy(scale, &rounding.scale, sizeof(*scale));
}

void LoadBf16(const std::byte* row, int cols, std::byte* word_row) {
  auto* words = reinterpret_cast<int16_t*>(word_row);
  auto* scales = reinterpret_cast<float*>(word_row + WordScalesOffset(cols));
  const int num_full = cols / kCacheGroup;
  for (int group = 0; group < num_full; ++group) {
    const int begin = group * kCacheGroup;
    LoadBf16Group(row + 2 * begin, words + begin, scales + group);
  }
  const int begin = num_full * kCacheGroup;
  if (begin == cols) return;
  std::byte rest[2 * kCacheGroup] = {};
  __builtin_memcpy(rest, row + 2 * begin, 2 * static_cast<unsigned long>(cols - begin));
  LoadBf16Group(rest, words + begin, scales + num_full);
}

void LoadQ8(const std::byte* row, int cols, std::byte* word_row) {
  int i = 0;
  for (; i + 16 <= cols; i += 16) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(word_row + 2 * i), _mm256_cvtepi8_epi16(codes));
  }
  auto* words = reinterpret_cast<int16_t*>(word_row);
  for (; i < cols; ++i) words[i] = static_cast<int8_t>(row[i]);
  for (; i < NumCacheGroups(cols) * kCacheGroup; ++i) words[i] = 0;
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

}  // namespace hadal::avx2
