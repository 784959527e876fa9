// Products of blocked weights with inputs that are rounded to bytes in groups of 32, as
// round_row.cc rounds them for grouped weights. The sums inside a group are exact; the rest is one
// chain of fused multiply-adds for each of eight lanes, the same for one row and for many.
#include "kernels/avx2/blocks.h"
#include "kernels/avx2/parts.h"

namespace hadal::avx2 {
namespace {

#define HADAL_BLOCK_INLINE [[gnu::always_inline]] inline

constexpr int kRowTile = 4;
constexpr int kHalf = 16;

// A rounded row: codes, and for every group its scale and the sum of its codes times the scale; the
// same once more for every half of a group, since some types have scales of their own for those.
struct RoundedRow {
  alignas(32) char codes[kMaxRoundedCols];
  alignas(32) float scales[kMaxRoundedCols / kRun];
  alignas(32) float sums[kMaxRoundedCols / kRun];
  alignas(32) float half_scales[kMaxRoundedCols / kHalf];
  alignas(32) float half_sums[kMaxRoundedCols / kHalf];
};

HADAL_BLOCK_INLINE float LargestMagnitude(const float* x) {
  Vec largest = Set(0.0f);
  for (int i = 0; i < kRun; i += 8) {
    const Vec magnitude = _mm256_andnot_ps(Set(-0.0f), _mm256_loadu_ps(x + i));
    largest = MaxOrNan(largest, magnitude);
  }
  return LargestLane(largest);
}

HADAL_BLOCK_INLINE int32_t SumOfInts(__m128i v) {
  v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4E));
  v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xB1));
  return _mm_cvtsi128_si32(v);
}

// One group: 32 codes, its scale, the sums of both halves.
HADAL_BLOCK_INLINE void RoundGroup(const float* x, int first, RoundedRow* row) {
  constexpr float kSmallestMagnitude = 1e-30f;
  const float largest = LargestMagnitude(x);
  const bool is_zero = largest < kSmallestMagnitude;
  const float scale = is_zero ? 0.0f : largest / 127.0f;
  const Vec factor = Set(is_zero ? 0.0f : 127.0f / largest);
  __m256i ints[4];
  for (int i = 0; i < 4; ++i) {
    ints[i] = _mm256_cvtps_epi32(Mul(_mm256_loadu_ps(x + 8 * i), factor));
  }
  // Packing works on halves of registers; the last step puts eights in order.
  const __m256i words[2] = {_mm256_packs_epi32(ints[0], ints[1]),
                            _mm256_packs_epi32(ints[2], ints[3])};
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(words[0], words[1]), order);
  _mm256_store_si256(reinterpret_cast<__m256i*>(row->codes + first), bytes);
  int32_t total = 0;
  for (int half = 0; half < 2; ++half) {
    const __m256i both = _mm256_add_epi32(ints[2 * half], ints[2 * half + 1]);
    const __m128i four =
        _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    const int32_t sum = SumOfInts(four);
    row->half_scales[first / kHalf + half] = scale;
    row->half_sums[first / kHalf + half] = scale * static_cast<float>(sum);
    total += sum;
  }
  row->scales[first / kRun] = scale;
  row->sums[first / kRun] = scale * static_cast<float>(total);
}

void RoundInput(const float* x, int cols, RoundedRow* row) {
  for (int col = 0; col < cols; col += kRun) RoundGroup(x + col, col, row);
}

// Sums over the columns of a quarter of a run each: lanes 0 to 3 belong to the first half.
template <QuantFormat format>
HADAL_BLOCK_INLINE __m256i Dot(__m256i codes, __m256i x) {
  const __m256i words =
      HasSignedCodes(format)
          ? _mm256_maddubs_epi16(_mm256_sign_epi8(codes, codes), _mm256_sign_epi8(x, codes))
          : _mm256_maddubs_epi16(codes, x);
  return _mm256_madd_epi16(words, _mm256_set1_epi16(1));
}

// What a row has summed up for an output: products, and scales or minima times the sums of the
// input, which offsets and minima take away or add in the end.
struct Sums {
  Vec products, corrections;
};

template <QuantFormat format>
constexpr bool kHasCorrection = UseOfMin(format) != MinUse::kNone || CodeOffset(format) != 0;

// How often corrections count.
template <QuantFormat format>
constexpr float CorrectionFactor() {
  if (CodeOffset(format) != 0) return static_cast<float>(-CodeOffset(format));
  return UseOfMin(format) == MinUse::kAdd ? 1.0f : -1.0f;
}

// Scales of a block.
template <QuantFormat format>
constexpr int kNumScales = SizeOfBlock(format).elements / ScaleElements(format);

// A block's scales times the input's, and the block's corrections.
template <QuantFormat format>
HADAL_BLOCK_INLINE void StartBlock(const BlockScales& scales, const RoundedRow& x, int block,
                                   float* products, Sums* sums) {
  constexpr int kCount = kNumScales<format>;
  constexpr bool kIsByHalf = ScaleElements(format) == kHalf;
  const float* x_scales = (kIsByHalf ? x.half_scales : x.scales) + block * kCount;
  const float* x_sums = (kIsByHalf ? x.half_sums : x.sums) + block * kCount;
  const float* corrected = CodeOffset(format) != 0 ? scales.scale : scales.min;
  if constexpr (kCount == 1) {
    products[0] = scales.scale[0] * x_scales[0];
    if constexpr (kHasCorrection<format>) {
      const Vec first = _mm256_castps128_ps256(_mm_set_ss(x_sums[0]));
      sums->corrections = MulAdd(Set(corrected[0]), first, sums->corrections);
    }
  } else {
    for (int i = 0; i < kCount; i += 8) {
      _mm256_store_ps(products + i,
                      Mul(_mm256_load_ps(scales.scale + i), _mm256_load_ps(x_scales + i)));
      if constexpr (kHasCorrection<format>) {
        sums->corrections =
            MulAdd(_mm256_load_ps(corrected + i), _mm256_load_ps(x_sums + i), sums->corrections);
      }
    }
  }
}

// Adds runs from `run` on of a block to the sums of all rows.
template <QuantFormat format, int kRows, int run = 0>
HADAL_BLOCK_INLINE void AddRuns(const char* block, const char* const (&x)[kRows],
                                const BlockScales (&scales)[kRows], Sums (&sums)[kRows]) {
  if constexpr (run < SizeOfBlock(format).elements / kRun) {
    const __m256i codes = LoadStoredCodes<format, run>(block);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m256i xv = _mm256_loadu_si256(At256(x[r] + kRun * run));
      const Vec dot = _mm256_cvtepi32_ps(Dot<format>(codes, xv));
      const float* scale = scales[r].scale + run * kRun / ScaleElements(format);
      const Vec factor =
          ScaleElements(format) == kRun
              ? _mm256_broadcast_ss(scale)
              : _mm256_set_m128(_mm_broadcast_ss(scale + 1), _mm_broadcast_ss(scale));
      sums[r].products = MulAdd(dot, factor, sums[r].products);
    }
    AddRuns<format, kRows, run + 1>(block, x, scales, sums);
  }
}

// kRows rows times outputs [first, first + kOutputs).
template <QuantFormat format, int kRows, int kOutputs>
[[gnu::noinline]] void Multiply(const MatMulArgs& args, const RoundedRow* rows, int first,
                                int first_row) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  const int num_blocks = args.weights.cols / kSize.elements;
  const int64_t row_bytes = int64_t{num_blocks} * kSize.bytes;
  const char* block = static_cast<const char*>(args.weights.data) + first * row_bytes;
  Sums sums[kOutputs][kRows];
  for (int o = 0; o < kOutputs; ++o) {
    for (int r = 0; r < kRows; ++r) sums[o][r] = {Set(0.0f), Set(0.0f)};
  }
  for (int b = 0; b < num_blocks; ++b, block += kSize.bytes) {
    const char* x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = rows[r].codes + b * kSize.elements;
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
      const char* at = block + o * row_bytes;
      // The next outputs, beside these; a prefetch past the end is harmless.
      for (int line = 0; line < kSize.bytes; line += 64) {
        _mm_prefetch(at + kOutputs * row_bytes + line, _MM_HINT_T1);
      }
      BlockScales stored, products[kRows];
      LoadBlockScales<format>(at, &stored);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        StartBlock<format>(stored, rows[r], b, products[r].scale, &sums[o][r]);
      }
      AddRuns<format, kRows>(at, x, products, sums[o]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      Vec lanes = sums[o][r].products;
      if constexpr (kHasCorrection<format>) {
        lanes = MulAdd(Set(CorrectionFactor<format>()), sums[o][r].corrections, lanes);
      }
      const float sum = Sum(lanes);
      float* out = args.out + (first_row + r) * args.out_stride + first + o;
      *out = args.accumulate ? *out + sum : sum;
    }
  }
}

template <QuantFormat format, int kRows, int kOutputs>
void AllOutputs(const MatMulArgs& args, const RoundedRow* rows, int first_row) {
  int o = 0;
  for (; o + kOutputs <= args.num_outputs; o += kOutputs) {
    Multiply<format, kRows, kOutputs>(args, rows, o, first_row);
  }
  for (; o < args.num_outputs; ++o) Multiply<format, kRows, 1>(args, rows, o, first_row);
}

template <QuantFormat format>
void MatMul(const MatMulArgs& args) {
  RoundedRow rows[kRowTile];
  for (int first = 0; first < args.num_rows; first += kRowTile) {
    const int rest = args.num_rows - first, count = rest < kRowTile ? rest : kRowTile;
    for (int r = 0; r < count; ++r) {
      RoundInput(args.x + (first + r) * args.x_stride, args.weights.cols, &rows[r]);
    }
    if (count == kRowTile) {
      AllOutputs<format, kRowTile, 1>(args, rows, first);
    } else {
      for (int r = 0; r < count; ++r) AllOutputs<format, 1, 4>(args, rows + r, first + r);
    }
  }
}

#undef HADAL_BLOCK_INLINE

}  // namespace

void MultiplyRoundedBlocks(QuantFormat format, const MatMulArgs& args) {
  switch (format) {
    case QuantFormat::kQ4_0:
      return MatMul<QuantFormat::kQ4_0>(args);
    case QuantFormat::kQ4_1:
      return MatMul<QuantFormat::kQ4_1>(args);
    case QuantFormat::kQ5_0:
      return MatMul<QuantFormat::kQ5_0>(args);
    case QuantFormat::kQ5_1:
      return MatMul<QuantFormat::kQ5_1>(args);
    case QuantFormat::kQ8_0:
      return MatMul<QuantFormat::kQ8_0>(args);
    case QuantFormat::kQ2_K:
      return MatMul<QuantFormat::kQ2_K>(args);
    case QuantFormat::kQ3_K:
      return MatMul<QuantFormat::kQ3_K>(args);
    case QuantFormat::kQ4_K:
      return MatMul<QuantFormat::kQ4_K>(args);
    case QuantFormat::kQ5_K:
      return MatMul<QuantFormat::kQ5_K>(args);
    case QuantFormat::kQ6_K:
      return MatMul<QuantFormat::kQ6_K>(args);
    case QuantFormat::kIq4Nl:
      return MatMul<QuantFormat::kIq4Nl>(args);
    case QuantFormat::kIq4Xs:
      return MatMul<QuantFormat::kIq4Xs>(args);
    default:
      return;
  }
}

}  // namespace hadal::avx2
