// A row of activations to bytes; kernel_table.h has the formula.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

constexpr float kSmallestMagnitude = 1e-30f;

// Thirty-two codes: bytes, words in the order 0, 2, 1, 3 of every four, and the two sums.
inline void Store32(const __m256i (&codes)[4], int8_t* bytes, int16_t* words, int16_t* pair_sums) {
  // Packing works in halves of registers; the permutation puts the words of codes in order.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i low = _mm256_packs_epi32(codes[0], codes[1]);
  const __m256i high = _mm256_packs_epi32(codes[2], codes[3]);
  const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes), packed);
  // Of every four bytes 0, 2 in one word pair and 1, 3 in the other.
  const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(packed, 8), 8);
  const __m256i odd = _mm256_srai_epi16(packed, 8);
  const __m256i a = _mm256_unpacklo_epi32(even, odd), b = _mm256_unpackhi_epi32(even, odd);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), _mm256_permute2x128_si256(a, b, 0x20));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + 16),
                      _mm256_permute2x128_si256(a, b, 0x31));
  // Lanes: columns 0 + 1 and 2 + 3 of every four.
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), packed);
  __m128i sum = _mm_add_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0x4E));
  sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xB1));
  const int32_t both = _mm_cvtsi128_si32(sum);
  __builtin_memcpy(pair_sums, &both, sizeof(both));
}

void QuantizeRow(const float* x, int cols, int group_size, const QuantizedRow& out) {
  for (int begin = 0; begin < cols; begin += group_size) {
    const int size = cols - begin < group_size ? cols - begin : group_size;
    Vec magnitude = Set(0.0f);
    for (int i = 0; i < size; i += 8) {
      magnitude = MaxOrNan(magnitude, _mm256_andnot_ps(Set(-0.0f), _mm256_loadu_ps(x + begin + i)));
    }
    const float largest = LargestLane(magnitude);
    const bool is_zero = largest < kSmallestMagnitude;
    out.scales[begin / group_size] = is_zero ? 0.0f : largest / 127.0f;
    const Vec factor = Set(is_zero ? 0.0f : 127.0f / largest);
    for (int col = begin; col < begin + size; col += 32) {
      __m256i codes[4];
      for (int i = 0; i < 4; ++i) {
        codes[i] = _mm256_cvtps_epi32(Mul(_mm256_loadu_ps(x + col + 8 * i), factor));
      }
      Store32(codes, out.codes + col, out.words + col, out.pair_sums + col / 16);
    }
  }
}

}  // namespace

void AddQuantizeRow(KernelTable* table) { table->quantize_row = QuantizeRow; }

}  // namespace hadal::avx2
