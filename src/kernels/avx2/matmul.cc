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
  alignas(32) float scratch[kTileOutputs * kTileCols];

  void Get(int o, int num, int col, int count, const float** pointers) {
    for (int i = 0; i < num; ++i) {
      float* to = scratch + i * kTileCols;
      DecodeSpan<format>(weights, o + i, col, count, to);
      pointers[i] = to;
    }
  }
};

template <QuantFormat format, class Finish>
void ManyRows(const MatMulArgs& args, int first, int last, const Finish& finish) {
  DecodedWeights<format> source{args.weights, {}};
  TiledProduct(Rows{args.x, args.x_stride, args.num_rows}, args.weights.cols, first, last, &source,
               finish, args.out, args.out_stride);
}

// Sixteen columns, or a tail of them, of the rows and outputs of a tile.
template <int kRows, int kOutputs>
struct Sums {
  Vec acc[kRows][kOutputs];

  void Clear() {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int o = 0; o < kOutputs; ++o) acc[r][o] = _mm256_setzero_ps();
    }
  }
};

// State of one output of the few-rows product: where its weights are, and for kF8Block128 whether
// the fast conversion was right for all of them.
template <QuantFormat format>
struct OutputRow {
  const char* data;
  void Start(const WeightRows& weights, int row) { data = RowBytes<format>(weights, row); }
  void StartBlock(int) {}
  VecPair Load(int col) {
    return Reader<format>::Load(data + int64_t{col} * Reader<format>::kBytes);
  }
  VecPair LoadTail(const char* padded) { return Reader<format>::Load(padded); }
  bool exact() const { return true; }
};

template <>
struct OutputRow<QuantFormat::kF8Block128> {
  const char* data;
  const char* scales;
  Vec scale;        // 256 times the block's
  __m128i largest;  // codes without sign, to see NaN
  bool finite;

  void Start(const WeightRows& weights, int row) {
    data = RowBytes<QuantFormat::kF8Block128>(weights, row);
    scales = RowScales(weights, row);
    largest = _mm_setzero_si128();
    finite = true;
  }
  void StartBlock(int col) {
    const float times_256 = LoadScale(scales, col / kF8BlockSize) * 256.0f;
    finite = finite && __builtin_fabsf(times_256) < __builtin_inff();
    scale = Set(times_256);
  }
  VecPair Load(int col) { return LoadTail(data + col); }
  VecPair LoadTail(const char* p) {
    const __m128i codes = LoadBytes16(p);
    largest = _mm_max_epu8(largest, _mm_or_si128(codes, _mm_set1_epi8(static_cast<char>(0x80))));
    const VecPair v = HalvesToFloat(E4m3AsHalves(codes));
    return {Mul(v.low, scale), Mul(v.high, scale)};
  }
  bool exact() const {
    const __m128i nan = _mm_cmpeq_epi8(largest, _mm_set1_epi8(static_cast<char>(0xFF)));
    return finite && _mm_movemask_epi8(nan) == 0;
  }
};

// x[0..kRows) times outputs [o, o + kOutputs). False when the fast conversion met a NaN code or a
// scale that overflows; then nothing was written.
template <QuantFormat format, int kRows, int kOutputs, class Finish>
bool FewRows(const MatMulArgs& args, const float* x, float* out, int first, const Finish& finish) {
  constexpr int kBytes = Reader<format>::kBytes;
  const int cols = args.weights.cols, full = cols & ~15;
  OutputRow<format> rows[kOutputs];
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) rows[o].Start(args.weights, first + o);
  Sums<kRows, kOutputs> sums;
  sums.Clear();
  const auto step = [&](int o, const VecPair& w, int col) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const float* at = x + r * args.x_stride + col;
      sums.acc[r][o] = MulAdd(_mm256_loadu_ps(at), w.low, sums.acc[r][o]);
      sums.acc[r][o] = MulAdd(_mm256_loadu_ps(at + 8), w.high, sums.acc[r][o]);
    }
  };
  for (int col = 0; col < full;) {
    const int end = format == QuantFormat::kF8Block128 ? Smaller(col + kF8BlockSize, full) : full;
#pragma GCC unroll 16
    for (int o = 0; o < kOutputs; ++o) rows[o].StartBlock(col);
    for (; col < end; col += 16) {
#pragma GCC unroll 16
      for (int o = 0; o < kOutputs; ++o) step(o, rows[o].Load(col), col);
    }
  }
  if (const int tail = cols - full; tail > 0) {
    char buffer[64];
    const __m256i low_mask = MaskFirst(Smaller(tail, 8));
    const __m256i high_mask = MaskFirst(tail > 8 ? tail - 8 : 0);
    for (int o = 0; o < kOutputs; ++o) {
      rows[o].StartBlock(full);
      const VecPair w =
          rows[o].LoadTail(PaddedTail<kBytes>(rows[o].data + int64_t{full} * kBytes, tail, buffer));
      for (int r = 0; r < kRows; ++r) {
        const float* at = x + r * args.x_stride + full;
        sums.acc[r][o] = MulAdd(_mm256_maskload_ps(at, low_mask), w.low, sums.acc[r][o]);
        if (tail > 8) {
          sums.acc[r][o] = MulAdd(_mm256_maskload_ps(at + 8, high_mask), w.high, sums.acc[r][o]);
        }
      }
    }
  }
  for (const OutputRow<format>& row : rows) {
    if (!row.exact()) return false;
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      finish(out + r * args.out_stride + first + o, Sum(sums.acc[r][o]));
    }
  }
  return true;
}

template <QuantFormat format, int kRows, class Finish>
void FewRowsAllOutputs(const MatMulArgs& args, const Finish& finish) {
  // As many sums as the registers hold beside the operands.
  constexpr int kOutputs = kRows == 1 ? 8 : kRows == 2 ? 4 : kRows == 3 ? 3 : 2;
  int o = 0;
  for (; o + kOutputs <= args.num_outputs; o += kOutputs) {
    if (!FewRows<format, kRows, kOutputs>(args, args.x, args.out, o, finish)) {
      ManyRows<format>(args, o, o + kOutputs, finish);
    }
  }
  for (; o < args.num_outputs; ++o) {
    if (!FewRows<format, kRows, 1>(args, args.x, args.out, o, finish)) {
      ManyRows<format>(args, o, o + 1, finish);
    }
  }
}

template <QuantFormat format, class Finish>
void AnyRows(const MatMulArgs& args, const Finish& finish) {
  switch (args.num_rows) {
    case 1:
      return FewRowsAllOutputs<format, 1>(args, finish);
    case 2:
      return FewRowsAllOutputs<format, 2>(args, finish);
    case 3:
      return FewRowsAllOutputs<format, 3>(args, finish);
    case 4:
      return FewRowsAllOutputs<format, 4>(args, finish);
    default:
      return ManyRows<format>(args, 0, args.num_outputs, finish);
  }
}

template <QuantFormat format>
void MatMul(const MatMulArgs& args) {
  if (args.accumulate) {
    AnyRows<format>(args, AddTo{});
  } else {
    AnyRows<format>(args, Assign{});
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
  table->matmul[kIdx] = MatMul<format>;
  table->decode_row[kIdx] = DecodeRow<format>;
}

}  // namespace

void AddMatMul(KernelTable* table) {
  AddFormat<QuantFormat::kF32>(table);
  AddFormat<QuantFormat::kBF16>(table);
  AddFormat<QuantFormat::kF16>(table);
  AddFormat<QuantFormat::kF8Block128>(table);
}

}  // namespace hadal::avx2
