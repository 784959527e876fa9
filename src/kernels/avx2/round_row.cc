// A row of activations to bytes; kernel_table.h has the formula.
#include "kernels/avx2/grouped.h"
#include "kernels/avx2/parts.h"
#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

constexpr float kSmallestMagnitude = 1e-30f;

// Thirty-two codes as bytes, from lanes of ints. Packing works in halves of registers; the
// permutation puts the words of four codes in order.
inline __m256i PackCodes(const __m256i (&codes)[4]) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i low = _mm256_packs_epi32(codes[0], codes[1]);
  const __m256i high = _mm256_packs_epi32(codes[2], codes[3]);
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}

// The two sums: of columns 0 and 1, and 2 and 3, of every four.
inline int32_t PairSums(__m256i codes) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), codes);
  __m128i sum = _mm_add_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0x4E));
  sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xB1));
  return _mm_cvtsi128_si32(sum);
}

// Words in the order 0, 2, 1, 3 of every four.
inline void StoreWords(__m256i codes, char* to) {
  const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8);
  const __m256i odd = _mm256_srai_epi16(codes, 8);
  const __m256i a = _mm256_unpacklo_epi32(even, odd), b = _mm256_unpackhi_epi32(even, odd);
  auto* words = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(words, _mm256_permute2x128_si256(a, b, 0x20));
  _mm256_storeu_si256(words + 1, _mm256_permute2x128_si256(a, b, 0x31));
}

inline void StoreBytes(__m256i codes, int32_t sums, char* to, char* sums_to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), codes);
  __builtin_memcpy(sums_to, &sums, sizeof(sums));
}

// One group into its block.
template <QuantFormat format>
void RoundGroup(const float* x, int size, char* block) {
  Vec magnitude = Set(0.0f);
  for (int i = 0; i < size; i += 8) {
    magnitude = MaxOrNan(magnitude, _mm256_andnot_ps(Set(-0.0f), _mm256_loadu_ps(x + i)));
  }
  const float largest = LargestLane(magnitude);
  const bool is_zero = largest < kSmallestMagnitude;
  const float scale = is_zero ? 0.0f : largest / 127.0f;
  __builtin_memcpy(block + ScaleOffset(format, size), &scale, sizeof(scale));
  const Vec factor = Set(is_zero ? 0.0f : 127.0f / largest);
  for (int col = 0; col < size; col += 32) {
    __m256i ints[4];
    for (int i = 0; i < 4; ++i) {
      ints[i] = _mm256_cvtps_epi32(Mul(_mm256_loadu_ps(x + col + 8 * i), factor));
    }
    const __m256i codes = PackCodes(ints);
    if (format == QuantFormat::kInt4Group) {
      StoreBytes(codes, PairSums(codes), block + col, block + SumsOffset(size) + col / 8);
    } else {
      StoreWords(codes, block + 2 * col);
    }
  }
}

template <QuantFormat format>
void RoundRowFor(const RoundArgs& args) {
  auto* block = reinterpret_cast<char*>(args.out);
  for (int begin = 0; begin < args.cols; begin += args.group_size) {
    const int size = Least(args.group_size, args.cols - begin);
    RoundGroup<format>(args.x + begin, size, block);
    block += RoundedBlockBytes(format, size);
  }
}

void RoundRow(const RoundArgs& args) {
  if (args.format == QuantFormat::kInt4Group) {
    RoundRowFor<QuantFormat::kInt4Group>(args);
  } else {
    RoundRowFor<QuantFormat::kInt8Group>(args);
  }
}

int64_t RoundedRowBytes(QuantFormat format, int group_size, int cols) {
  const int full = cols / group_size, rest = cols % group_size;
  return int64_t{full} * RoundedBlockBytes(format, group_size) +
         (rest > 0 ? RoundedBlockBytes(format, rest) : 0);
}

}  // namespace

void AddRoundRow(KernelTable* table) {
  table->rounded_row_bytes = RoundedRowBytes;
  table->round_row = RoundRow;
}

}  // namespace hadal::avx2
