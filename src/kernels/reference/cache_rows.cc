// Rows of the latent cache in their forms.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/reference/decode.h"
#include "kernels/reference/parts.h"

namespace hadal::reference {
namespace {

void StoreF32(const float* x, int cols, std::byte* row) {
  std::memcpy(row, x, static_cast<size_t>(cols) * sizeof(float));
}
void LoadF32(const std::byte* row, int cols, int first, float* x) {
  std::memcpy(x, row + 4 * first, static_cast<size_t>(cols - first) * sizeof(float));
}

uint16_t RoundToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

void StoreBf16(const float* x, int cols, std::byte* row) {
  for (int i = 0; i < cols; ++i) {
    const uint16_t bits = RoundToBf16(x[i]);
    std::memcpy(row + 2 * i, &bits, sizeof(bits));
  }
}
void LoadBf16(const std::byte* row, int cols, int first, float* x) {
  for (int i = first; i < cols; ++i) x[i - first] = DecodeBf16(LoadUnaligned<uint16_t>(row, i));
}

std::byte* ScalesOf(std::byte* row, int cols) { return row + (cols + 3) / 4 * 4; }
const std::byte* ScalesOf(const std::byte* row, int cols) { return row + (cols + 3) / 4 * 4; }

void StoreQ8(const float* x, int cols, std::byte* row) {
  for (int begin = 0; begin < cols; begin += kCacheGroup) {
    const int end = std::min(begin + kCacheGroup, cols);
    float largest = 0;
    for (int i = begin; i < end; ++i) {
      const float magnitude = std::fabs(x[i]);
      largest = std::isnan(magnitude) || std::isnan(largest) ? NAN : std::max(largest, magnitude);
    }
    const bool is_zero = largest < 1e-30f;
    const float scale = is_zero ? 0.0f : largest / 127.0f;
    const float factor = is_zero ? 0.0f : 127.0f / largest;
    for (int i = begin; i < end; ++i) {
      const float code = std::nearbyint(x[i] * factor);
      row[i] = static_cast<std::byte>(std::fabs(code) <= 127.0f ? static_cast<int>(code) : -128);
    }
    std::memcpy(ScalesOf(row, cols) + begin / kCacheGroup * 4, &scale, sizeof(scale));
  }
}
void LoadQ8(const std::byte* row, int cols, int first, float* x) {
  for (int i = first; i < cols; ++i) {
    const auto scale = LoadUnaligned<float>(ScalesOf(row, cols), i / kCacheGroup);
    x[i - first] = static_cast<float>(static_cast<int8_t>(row[i])) * scale;
  }
}

// kQ16 is stored as attention's words are rounded: attention_words.cc.
void LoadQ16(const std::byte* row, int cols, int first, float* x) {
  for (int i = first; i < cols; ++i) {
    const auto scale = LoadUnaligned<float>(row + WordScalesOffset(cols), i / kCacheGroup);
    x[i - first] = static_cast<float>(LoadUnaligned<int16_t>(row, i)) * scale;
  }
}

}  // namespace

void AddCacheRows(KernelTable* table) {
  table->store_cache_row[static_cast<int>(CacheType::kF32)] = StoreF32;
  table->load_cache_row[static_cast<int>(CacheType::kF32)] = LoadF32;
  table->store_cache_row[static_cast<int>(CacheType::kBF16)] = StoreBf16;
  table->load_cache_row[static_cast<int>(CacheType::kBF16)] = LoadBf16;
  table->store_cache_row[static_cast<int>(CacheType::kQ8)] = StoreQ8;
  table->load_cache_row[static_cast<int>(CacheType::kQ8)] = LoadQ8;
  table->load_cache_row[static_cast<int>(CacheType::kQ16)] = LoadQ16;
}

}  // namespace hadal::reference
