// Products of blocked weights with few rows, decoded in registers. In the order of sums of all
// products, so the bits are those of the decoded weight.
#include "kernels/avx2/blocks.h"
#include "kernels/avx2/parts.h"

namespace hadal::avx2 {
namespace {

// sums += x[0 .. 32 runs) times the runs from `run` on of a block.
template <QuantFormat format, int kRows, int run = 0>
[[gnu::always_inline]] inline void AddRuns(const char* block, const BlockScales& scales,
                                           const float* x, int64_t x_stride, Vec (&sums)[kRows]) {
  if constexpr (run < SizeOfBlock(format).elements / kRun) {
    const __m256i codes = LoadCodes<format, run>(block);
    const auto add = [&](const Vec& w, int quarter) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const Vec xv = _mm256_loadu_ps(x + r * x_stride + kRun * run + 8 * quarter);
        sums[r] = MulAdd(xv, w, sums[r]);
      }
    };
    add(QuarterOfRun<format, run, 0>(codes, scales), 0);
    add(QuarterOfRun<format, run, 1>(codes, scales), 1);
    add(QuarterOfRun<format, run, 2>(codes, scales), 2);
    add(QuarterOfRun<format, run, 3>(codes, scales), 3);
    AddRuns<format, kRows, run + 1>(block, scales, x, x_stride, sums);
  }
}

// All rows of x (kRows of them) times outputs [first, first + kOutputs): so many chains of sums
// that one hides the latency of another.
template <QuantFormat format, int kRows, int kOutputs>
[[gnu::noinline]] void FewRows(const MatMulArgs& args, int first) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  const int num_blocks = args.weights.cols / kSize.elements;
  const int64_t row_bytes = int64_t{num_blocks} * kSize.bytes;
  const char* block = static_cast<const char*>(args.weights.data) + first * row_bytes;
  Vec sums[kOutputs][kRows];
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[o][r] = Set(0.0f);
  }
  for (int b = 0; b < num_blocks; ++b, block += kSize.bytes) {
    const float* x = args.x + int64_t{b} * kSize.elements;
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
      const char* at = block + o * row_bytes;
      // The next outputs, beside these; a prefetch past the end is harmless.
      for (int line = 0; line < kSize.bytes; line += 64) {
        _mm_prefetch(at + kOutputs * row_bytes + line, _MM_HINT_T1);
      }
      BlockScales scales;
      LoadBlockScales<format>(at, &scales);
      AddRuns<format, kRows>(at, scales, x, args.x_stride, sums[o]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      float* out = args.out + r * args.out_stride + first + o;
      *out = args.accumulate ? *out + Sum(sums[o][r]) : Sum(sums[o][r]);
    }
  }
}

template <QuantFormat format, int kRows>
void AllOutputs(const MatMulArgs& args) {
  constexpr int kOutputs = 4;
  int o = 0;
  for (; o + kOutputs <= args.num_outputs; o += kOutputs) FewRows<format, kRows, kOutputs>(args, o);
  for (; o < args.num_outputs; ++o) FewRows<format, kRows, 1>(args, o);
}

template <QuantFormat format>
void FewRowsOf(const MatMulArgs& args) {
  if (args.num_rows == 1) return AllOutputs<format, 1>(args);
  AllOutputs<format, 2>(args);
}

}  // namespace

void FewRowsOfBlocks(QuantFormat format, const MatMulArgs& args) {
  switch (format) {
    case QuantFormat::kQ4_0:
      return FewRowsOf<QuantFormat::kQ4_0>(args);
    case QuantFormat::kQ4_1:
      return FewRowsOf<QuantFormat::kQ4_1>(args);
    case QuantFormat::kQ5_0:
      return FewRowsOf<QuantFormat::kQ5_0>(args);
    case QuantFormat::kQ5_1:
      return FewRowsOf<QuantFormat::kQ5_1>(args);
    case QuantFormat::kQ8_0:
      return FewRowsOf<QuantFormat::kQ8_0>(args);
    case QuantFormat::kQ2_K:
      return FewRowsOf<QuantFormat::kQ2_K>(args);
    case QuantFormat::kQ3_K:
      return FewRowsOf<QuantFormat::kQ3_K>(args);
    case QuantFormat::kQ4_K:
      return FewRowsOf<QuantFormat::kQ4_K>(args);
    case QuantFormat::kQ5_K:
      return FewRowsOf<QuantFormat::kQ5_K>(args);
    case QuantFormat::kQ6_K:
      return FewRowsOf<QuantFormat::kQ6_K>(args);
    case QuantFormat::kIq4Nl:
      return FewRowsOf<QuantFormat::kIq4Nl>(args);
    case QuantFormat::kIq4Xs:
      return FewRowsOf<QuantFormat::kIq4Xs>(args);
    default:
      return;
  }
}

}  // namespace hadal::avx2
