// Rows of the latent cache to floats. Storing is one row per token and layer and stays with the
// reference.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

inline __m128i LoadEightBytes(const std::byte* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}

void LoadBf16(const std::byte* row, int cols, int first, float* x) {
  int i = first;
  for (; i + 8 <= cols; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * i));
    const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16);
    _mm256_storeu_ps(x + i - first, _mm256_castsi256_ps(wide));
  }
  for (; i < cols; ++i) {
    uint16_t bits;
    __builtin_memcpy(&bits, row + 2 * i, sizeof(bits));
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    __builtin_memcpy(x + i - first, &wide, sizeof(wide));
  }
}

// x = codes * scales, with eight codes as ints from load_eight(i) and one from load_one(i).
template <class LoadEight, class LoadOne>
inline void LoadScaled(const std::byte* scales, int cols, int first, float* x,
                       const LoadEight& load_eight, const LoadOne& load_one) {
  for (int i = first; i < cols;) {
    const int group = i / kCacheGroup, group_end = (group + 1) * kCacheGroup;
    const int end = group_end < cols ? group_end : cols;
    float scale;
    __builtin_memcpy(&scale, scales + 4 * group, sizeof(scale));
    for (; i + 8 <= end; i += 8) {
      _mm256_storeu_ps(x + i - first, Mul(_mm256_cvtepi32_ps(load_eight(i)), Set(scale)));
    }
    for (; i < end; ++i) x[i - first] = static_cast<float>(load_one(i)) * scale;
  }
}

void LoadQ8(const std::byte* row, int cols, int first, float* x) {
  LoadScaled(
      row + (cols + 3) / 4 * 4, cols, first, x,
      [row](int i) { return _mm256_cvtepi8_epi32(LoadEightBytes(row + i)); },
      [row](int i) { return static_cast<int8_t>(row[i]); });
}

void LoadQ16(const std::byte* row, int cols, int first, float* x) {
  const auto* words = reinterpret_cast<const int16_t*>(row);
  LoadScaled(
      row + WordScalesOffset(cols), cols, first, x,
      [words](int i) {
        return _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words + i)));
      },
      [words](int i) { return words[i]; });
}

}  // namespace

void AddCacheRows(KernelTable* table) {
  table->load_cache_row[static_cast<int>(CacheType::kBF16)] = LoadBf16;
  table->load_cache_row[static_cast<int>(CacheType::kQ8)] = LoadQ8;
  table->load_cache_row[static_cast<int>(CacheType::kQ16)] = LoadQ16;
}

}  // namespace hadal::avx2
