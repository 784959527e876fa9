// A row of activations to bytes; kernel_table.h has the formula.
#include "kernels/avx512/ints.h"
#include "kernels/avx512/magnitudes.h"
#include "kernels/avx512/parts.h"
#include "kernels/avx512/rounded_row.h"

namespace hadal::avx512 {
namespace {

constexpr float kSmallestMagnitude = 1e-30f;

HADAL_INLINE float LargestMagnitude(const float* x, int count) {
  __m512i bits = _mm512_setzero_si512();
  for (int i = 0; i < count; i += 16) {
    bits = _mm512_max_epi32(bits, MagnitudeBits(_mm512_loadu_ps(x + i)));
  }
  return LargestOfBits(bits);
}

// A group: its codes and what stands behind them all.
HADAL_INLINE void RoundGroup(const float* x, int count, char* codes, char* tail) {
  const float largest = LargestMagnitude(x, count);
  const bool is_zero = largest < kSmallestMagnitude;
  const float scale = is_zero ? 0.0f : largest / 127.0f;
  const __m512 factor = _mm512_set1_ps(is_zero ? 0.0f : 127.0f / largest);
  __m512i sums = _mm512_setzero_si512();
  for (int i = 0; i < count; i += 16) {
    // What is no number becomes the smallest int, and so -128.
    const __m512i ints = _mm512_max_epi32(
        _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor)), _mm512_set1_epi32(-128));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + i), _mm512_cvtsepi32_epi8(ints));
    sums = _mm512_add_epi32(sums, ints);
  }
  const int32_t words = static_cast<uint16_t>(-_mm512_reduce_add_epi32(sums));
  __builtin_memcpy(tail, &words, sizeof(words));
  __builtin_memcpy(tail + kTailScale, &scale, sizeof(scale));
}

void RoundRow(const RoundArgs& args) {
  auto* codes = reinterpret_cast<char*>(args.out);
  char* tail = codes + args.cols;
  for (int begin = 0; begin < args.cols; begin += args.group_size, tail += kTailBytes) {
    RoundGroup(args.x + begin, Least(args.group_size, args.cols - begin), codes + begin, tail);
  }
}

int64_t RoundedRowBytes(QuantFormat, int group_size, int cols) {
  return cols + int64_t{kTailBytes} * ((cols + group_size - 1) / group_size);
}

}  // namespace

void AddRoundRow(KernelTable* table) {
  constexpr QuantFormat kFormats[] = {QuantFormat::kInt8Group, QuantFormat::kInt4Group};
  for (const QuantFormat format : kFormats) {
    table->rounded_row_bytes[RoundedIdx(format)] = RoundedRowBytes;
    table->round_row[RoundedIdx(format)] = RoundRow;
  }
}

}  // namespace hadal::avx512
