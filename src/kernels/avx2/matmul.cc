// Products with stored weights. Few rows are bound by reading the weights: many outputs at once,
// weights converted in registers. Many rows are bound by arithmetic: weights are converted once per
// tile. Both sum in the same order.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/tile.h"
#include "kernels/avx2/weights.h"

namespace hadal::avx2 {
namespace {

// Decodes tiles of a weight.
template <QuantFormat format>
struct DecodedWeights {
  const WeightRows& weights;
  alignas(32) float scratch[kTileOutputs * kMaxSpan];

  void Get(int o, int num, int col, int count, const float** pointers) {
    for (int i = 0; i < num; ++i) {
      float* to = scratch + i * kMaxSpan;
      DecodeSpan<format>(weights, o + i, col, count, to);
      pointers[i] = to;
    }
  }
};

template <QuantFormat format>
void ManyRows(const MatMulArgs& args, int first, int num_outputs) {
  DecodedWeights<format> source{args.weights, {}};
  TiledProduct(Rows{args.x, args.x_stride, args.num_rows}, args.weights.cols, first, num_outputs,
               &source, Finish{1.0f, args.accumulate}, args.out + first, args.out_stride);
}

// Where the weights of one output are, and the scale of the block that is being read.
struct OutputRow {
  const char* data;
  const char* scales;
  Vec scale;
};

// x[r, col..] times sixteen weights.
template <int kRows>
inline void AddPair(const float* x, int64_t x_stride, const VecPair& w, Vec (&sums)[kRows]) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const float* at = x + r * x_stride;
    sums[r] = MulAdd(_mm256_loadu_ps(at), w.low, sums[r]);
    sums[r] = MulAdd(_mm256_loadu_ps(at + 8), w.high, sums[r]);
  }
}

// The same for the last `count` < 16 columns.
template <int kRows>
inline void AddTail(const float* x, int64_t x_stride, int count, const VecPair& w,
                    Vec (&sums)[kRows]) {
  for (int r = 0; r < kRows; ++r) {
    const float* at = x + r * x_stride;
    sums[r] = MulAdd(Load(at, count), w.low, sums[r]);
    if (count > 8) sums[r] = MulAdd(Load(at + 8, count - 8), w.high, sums[r]);
  }
}

// All rows of x (kRows of them) times outputs [first, first + kOutputs). False when the fast
// conversion was not exact; then nothing was written. Not inlined, as Accumulate.
template <QuantFormat format, int kRows, int kOutputs>
[[gnu::noinline]] bool FewRows(const MatMulArgs& args, int first) {
  constexpr int kBytes = kElementBytes<format>;
  const int cols = args.weights.cols, full = cols & ~15;
  Exactness<format> exactness;
  OutputRow rows[kOutputs];
  Vec sums[kOutputs][kRows];
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
    rows[o].data = RowBytes<format>(args.weights, first + o);
    rows[o].scales = HasScales(format) ? RowScales(args.weights, first + o) : nullptr;
    rows[o].scale = Set(0.0f);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) sums[o][r] = Set(0.0f);
  }
  const auto take_scale = [&](int o, int col) {
    if constexpr (HasScales(format)) {
      rows[o].scale = PreparedScale<Conversion::kFast>(rows[o].scales, col);
      exactness.SeeScale(rows[o].scale);
    }
  };
  const auto load = [&](int o, const char* p) {
    exactness.See(p);
    return LoadScaled<format, Conversion::kFast>(p, rows[o].scale);
  };
  // The processor's own prefetchers start anew with each row; at 2048 columns of kF8Block128
  // fetching the next outputs beside these raises 7.5 to 10 GB/s. A prefetch past the end is
  // harmless.
  const int64_t to_next_outputs = int64_t{kOutputs} * cols * kBytes;
  for (int col = 0; col < full;) {
    const int end = HasScales(format) ? Smaller(col + kF8BlockSize, full) : full;
#pragma GCC unroll 16
    for (int o = 0; o < kOutputs; ++o) take_scale(o, col);
    for (; col < end; col += 16) {
#pragma GCC unroll 16
      for (int o = 0; o < kOutputs; ++o) {
        const char* p = rows[o].data + int64_t{col} * kBytes;
        _mm_prefetch(p + to_next_outputs, _MM_HINT_T1);
        const VecPair w = load(o, p);
        AddPair<kRows>(args.x + col, args.x_stride, w, sums[o]);
      }
    }
  }
  for (int o = 0; o < kOutputs && full < cols; ++o) {
    char buffer[64];
    take_scale(o, full);
    const char* p = rows[o].data + int64_t{full} * kBytes;
    const VecPair w = load(o, PaddedTail<format>(p, cols - full, buffer));
    AddTail<kRows>(args.x + full, args.x_stride, cols - full, w, sums[o]);
  }
  if (!exactness.holds()) return false;
  const Finish finish{1.0f, args.accumulate};
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      finish(args.out + r * args.out_stride + first + o, Sum(sums[o][r]));
    }
  }
  return true;
}

template <QuantFormat format, int kRows, int kOutputs>
void FewRowsAllOutputs(const MatMulArgs& args) {
  int o = 0;
  for (; o + kOutputs <= args.num_outputs; o += kOutputs) {
    if (!FewRows<format, kRows, kOutputs>(args, o)) ManyRows<format>(args, o, kOutputs);
  }
  for (; o < args.num_outputs; ++o) {
    if (!FewRows<format, kRows, 1>(args, o)) ManyRows<format>(args, o, 1);
  }
}

template <QuantFormat format>
void DecodedMatMul(const MatMulArgs& args) {
  if constexpr (IsBlocked(format)) {
    if (args.num_rows <= 2) return FewRowsOfBlocks(format, args);
  }
  ManyRows<format>(args, 0, args.num_outputs);
}

template <QuantFormat format>
void MatMul(const MatMulArgs& args) {
  // As many sums as the registers hold beside the operands; scaled formats need more for those.
  constexpr bool kScaled = HasScales(format);
  switch (args.num_rows) {
    case 1:
      return FewRowsAllOutputs<format, 1, 4>(args);
    case 2:
      return FewRowsAllOutputs < format, 2, kScaled ? 2 : 4 > (args);
    case 3:
      return FewRowsAllOutputs < format, 3, kScaled ? 2 : 4 > (args);
    case 4:
      return FewRowsAllOutputs < format, 4, kScaled ? 2 : 3 > (args);
    default:
      return ManyRows<format>(args, 0, args.num_outputs);
  }
}

template <QuantFormat format>
void DecodeRow(const WeightRows& weights, int row, float* out) {
  const int full = weights.cols & ~15;
  DecodeSpan<format>(weights, row, 0, full, out);
  if (full == weights.cols) return;
  float tail[16];
  DecodeSpan<format>(weights, row, full, weights.cols - full, tail);
  for (int i = full; i < weights.cols; ++i) out[i] = tail[i - full];
}

template <QuantFormat format>
void AddFormat(KernelTable* table) {
  constexpr auto kIdx = static_cast<int>(format);
  if constexpr (IsGrouped(format) || IsBlocked(format)) {
    table->matmul[kIdx] = DecodedMatMul<format>;
  } else {
    table->matmul[kIdx] = MatMul<format>;
  }
  table->decode_row[kIdx] = DecodeRow<format>;
}

}  // namespace

void AddMatMul(KernelTable* table) {
  AddFormat<QuantFormat::kF32>(table);
  AddFormat<QuantFormat::kBF16>(table);
  AddFormat<QuantFormat::kF16>(table);
  AddFormat<QuantFormat::kF8Block128>(table);
  AddFormat<QuantFormat::kInt8Group>(table);
  AddFormat<QuantFormat::kInt4Group>(table);
  AddFormat<QuantFormat::kQ4_0>(table);
  AddFormat<QuantFormat::kQ4_1>(table);
  AddFormat<QuantFormat::kQ5_0>(table);
  AddFormat<QuantFormat::kQ5_1>(table);
  AddFormat<QuantFormat::kQ8_0>(table);
  AddFormat<QuantFormat::kQ2_K>(table);
  AddFormat<QuantFormat::kQ3_K>(table);
  AddFormat<QuantFormat::kQ4_K>(table);
  AddFormat<QuantFormat::kQ5_K>(table);
  AddFormat<QuantFormat::kQ6_K>(table);
  AddFormat<QuantFormat::kIq4Nl>(table);
  AddFormat<QuantFormat::kIq4Xs>(table);
}

}  // namespace hadal::avx2
