// Rows of the latent cache to floats. Storing is one row per token and layer and stays with the
// reference.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

inline __m128i LoadEightBytes(const std::byte* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}

void LoadBf16(const std::byte* row, int cols, float* x) {
  int i = 0;
  for (; i + 8 <= cols; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * i));
    const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16);
    _mm256_storeu_ps(x + i, _mm256_castsi256_ps(wide));
  }
  for (; i < cols; ++i) {
    uint16_t bits;
    __builtin_memcpy(&bits, row + 2 * i, sizeof(bits));
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    __builtin_memcpy(x + i, &wide, sizeof(wide));
  }
}

void LoadQ8(const std::byte* row, int cols, float* x) {
  const std::byte* scales = row + (cols + 3) / 4 * 4;
  for (int begin = 0; begin < cols; begin += kCacheGroup, scales += 4) {
    float scale;
    __builtin_memcpy(&scale, scales, sizeof(scale));
    const int end = begin + kCacheGroup < cols ? begin + kCacheGroup : cols;
    int i = begin;
    for (; i + 8 <= end; i += 8) {
      const __m256i codes = _mm256_cvtepi8_epi32(LoadEightBytes(row + i));
      _mm256_storeu_ps(x + i, Mul(_mm256_cvtepi32_ps(codes), Set(scale)));
    }
    for (; i < end; ++i) x[i] = static_cast<float>(static_cast<int8_t>(row[i])) * scale;
  }
}

}  // namespace

void AddCacheRows(KernelTable* table) {
  table->load_cache_row[static_cast<int>(CacheType::kBF16)] = LoadBf16;
  table->load_cache_row[static_cast<int>(CacheType::kQ8)] = LoadQ8;
}

}  // namespace hadal::avx2
