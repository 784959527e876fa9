// A row of activations to bytes; kernel_table.h has the formula.
#include "kernels/avx2/blocks.h"
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

// Two sums of 16 bits, of columns 0 and 1, and 2 and 3, of every four: of sums of two columns, and
// of 16 or 32 codes.
inline int32_t PairSumsOf(__m128i pairs) {
  __m128i sum = _mm_add_epi16(pairs, _mm_shuffle_epi32(pairs, 0x4E));
  sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xB1));
  return _mm_cvtsi128_si32(sum);
}
inline int32_t PairSums(__m128i codes) {
  return PairSumsOf(_mm_maddubs_epi16(_mm_set1_epi8(1), codes));
}
inline int32_t PairSums(__m256i codes) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), codes);
  return PairSumsOf(
      _mm_add_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1)));
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

// The scale of a group, and the factor that makes codes.
struct GroupRounding {
  float scale;
  Vec factor;
};
inline GroupRounding RoundingOf(const float* x, int size) {
  Vec magnitude = Set(0.0f);
  for (int i = 0; i < size; i += 8) {
    magnitude = MaxOrNan(magnitude, _mm256_andnot_ps(Set(-0.0f), _mm256_loadu_ps(x + i)));
  }
  const float largest = LargestLane(magnitude);
  const bool is_zero = largest < kSmallestMagnitude;
  return {is_zero ? 0.0f : largest / 127.0f, Set(is_zero ? 0.0f : 127.0f / largest)};
}

// Thirty-two codes.
inline __m256i RoundRun(const float* x, Vec factor) {
  __m256i ints[4];
  for (int i = 0; i < 4; ++i) ints[i] = _mm256_cvtps_epi32(Mul(_mm256_loadu_ps(x + 8 * i), factor));
  return PackCodes(ints);
}

// One group into its block.
template <QuantFormat format>
void RoundGroup(const float* x, int size, char* block) {
  const GroupRounding rounding = RoundingOf(x, size);
  __builtin_memcpy(block + ScaleOffset(format, size), &rounding.scale, sizeof(float));
  for (int col = 0; col < size; col += 32) {
    const __m256i codes = RoundRun(x + col, rounding.factor);
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

// For blocked weights, as block_facts-inl.h says.
void RoundRowForBlocks(const RoundArgs& args) {
  constexpr int kHalf = 16;
  const bool has_offset = CodeOffset(args.format) != 0;
  const bool is_by_half = ScaleElements(args.format) == kHalf;
  auto* run = reinterpret_cast<char*>(args.out);
  for (int col = 0; col < args.cols; col += kRun, run += kRoundedRunBytes) {
    const GroupRounding rounding = RoundingOf(args.x + col, kRun);
    const __m256i codes = RoundRun(args.x + col, rounding.factor);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(run), codes);
    __builtin_memcpy(run + kRunScaleOffset, &rounding.scale, sizeof(float));
    const int32_t sums[2] = {is_by_half ? PairSums(_mm256_castsi256_si128(codes)) : PairSums(codes),
                             is_by_half ? PairSums(_mm256_extracti128_si256(codes, 1)) : 0};
    for (int part = 0; part < 2; ++part) {
      char* to = run + kRunSumsOffset + 4 * part;
      if (has_offset) {
        __builtin_memcpy(to, &sums[part], sizeof(int32_t));
      } else {
        const int total = static_cast<int16_t>(sums[part]) + (sums[part] >> 16);
        const float sum = rounding.scale * static_cast<float>(total);
        __builtin_memcpy(to, &sum, sizeof(float));
      }
    }
  }
}

void RoundRow(const RoundArgs& args) {
  if (IsBlocked(args.format)) {
    RoundRowForBlocks(args);
  } else if (args.format == QuantFormat::kInt4Group) {
    RoundRowFor<QuantFormat::kInt4Group>(args);
  } else {
    RoundRowFor<QuantFormat::kInt8Group>(args);
  }
}

int64_t RoundedRowBytes(QuantFormat format, int group_size, int cols) {
  if (IsBlocked(format)) return int64_t{cols / kRun} * kRoundedRunBytes;
  const int full = cols / group_size, rest = cols % group_size;
  return int64_t{full} * RoundedBlockBytes(format, group_size) +
         (rest > 0 ? RoundedBlockBytes(format, rest) : 0);
}

}  // namespace

void AddRoundRow(KernelTable* table) {
  for (int i = 0; i < kNumRoundedFormats; ++i) {
    table->rounded_row_bytes[i] = RoundedRowBytes;
    table->round_row[i] = RoundRow;
  }
}

}  // namespace hadal::avx2
