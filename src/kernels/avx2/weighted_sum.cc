// Products with the transposed weight, read as it is stored: W_UK^T q of the absorbed attention.
#include "kernels/avx2/combine.h"
#include "kernels/avx2/parts.h"
#include "kernels/avx2/weights.h"

namespace hadal::avx2 {
namespace {

// Up to so many rows of x, a weight row is converted in registers and added to their sums in
// memory.
constexpr int kFewRows = 5;

// All sums start from zero.
void Clear(const WeightedSumArgs& args) {
  for (int t = 0; t < args.num_rows; ++t) {
    float* out = args.out + t * args.out_stride;
    for (int col = 0; col < args.weights.cols; col += 8) {
      Store(out + col, Set(0.0f), args.weights.cols - col);
    }
  }
}

// Adds sixteen columns of a weight row, times x, to the sums at `out`.
inline void AddPair(Vec x, const VecPair& w, float* out) {
  _mm256_storeu_ps(out, MulAdd(x, w.low, _mm256_loadu_ps(out)));
  _mm256_storeu_ps(out + 8, MulAdd(x, w.high, _mm256_loadu_ps(out + 8)));
}

// The same for the last `count` < 16 columns.
inline void AddTail(Vec x, const VecPair& w, int count, float* out) {
  Store(out, MulAdd(x, w.low, Load(out, count)), count);
  if (count > 8) Store(out + 8, MulAdd(x, w.high, Load(out + 8, count - 8)), count - 8);
}

// Adds weight row r, times x[t], to the sums of all rows.
template <QuantFormat format, Conversion conversion>
void AddWeightRow(const WeightedSumArgs args, int r, Exactness<format>* exactness) {
  const int full = args.weights.cols & ~15;
  const char* p = RowBytes<format>(args.weights, r);
  const char* scales = HasScales(format) ? RowScales(args.weights, r) : nullptr;
  Vec scale = Set(0.0f);
  Exactness<format> seen = *exactness;
  const auto take_scale = [&](int col) {
    if constexpr (HasScales(format)) {
      scale = PreparedScale<conversion>(scales, col);
      if constexpr (conversion == Conversion::kFast) seen.SeeScale(scale);
    }
  };
  for (int col = 0; col < full;) {
    take_scale(col);
    const int end = HasScales(format) ? Smaller(col + kF8BlockSize, full) : full;
    for (; col < end; col += 16, p += 16 * kElementBytes<format>) {
      seen.See(p);
      const VecPair w = LoadScaled<format, conversion>(p, scale);
      for (int t = 0; t < args.num_rows; ++t) {
        AddPair(Set(args.x[t * args.x_stride + r]), w, args.out + t * args.out_stride + col);
      }
    }
  }
  if (const int count = args.weights.cols - full; count > 0) {
    char buffer[64];
    take_scale(full);
    p = PaddedTail<format>(p, count, buffer);
    seen.See(p);
    const VecPair w = LoadScaled<format, conversion>(p, scale);
    for (int t = 0; t < args.num_rows; ++t) {
      AddTail(Set(args.x[t * args.x_stride + r]), w, count, args.out + t * args.out_stride + full);
    }
  }
  *exactness = seen;
}

// One weight row after another: bytes come in the order of memory, which is what the prefetchers
// want (four rows at a time read bf16 at 10 GB/s, one at 15).
template <QuantFormat format, Conversion conversion>
bool FewRows(const WeightedSumArgs& args) {
  Clear(args);
  Exactness<format> exactness;
  for (int r = 0; r < args.num_weight_rows; ++r) {
    AddWeightRow<format, conversion>(args, r, &exactness);
  }
  return conversion == Conversion::kExact || exactness.holds();
}

// Runs from `run` on of a block, times x of each row, added to the sums from `out` on.
template <QuantFormat format, int run = 0>
inline void AddBlockRuns(const WeightedSumArgs& args, int r, const char* block,
                         const BlockScales& scales, float* out) {
  if constexpr (run < SizeOfBlock(format).elements / kRun) {
    const __m256i codes = LoadCodes<format, run>(block);
    const Vec w[4] = {
        QuarterOfRun<format, run, 0>(codes, scales), QuarterOfRun<format, run, 1>(codes, scales),
        QuarterOfRun<format, run, 2>(codes, scales), QuarterOfRun<format, run, 3>(codes, scales)};
    for (int t = 0; t < args.num_rows; ++t) {
      const Vec x = Set(args.x[t * args.x_stride + r]);
      float* at = out + t * args.out_stride + kRun * run;
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) {
        _mm256_storeu_ps(at + 8 * q, MulAdd(x, w[q], _mm256_loadu_ps(at + 8 * q)));
      }
    }
    AddBlockRuns<format, run + 1>(args, r, block, scales, out);
  }
}

// Blocks are decoded in registers, one weight row after another.
template <QuantFormat format>
void FewRowsOfBlocks(const WeightedSumArgs& args) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  Clear(args);
  const char* block = static_cast<const char*>(args.weights.data);
  for (int r = 0; r < args.num_weight_rows; ++r) {
    for (int col = 0; col < args.weights.cols; col += kSize.elements, block += kSize.bytes) {
      BlockScales scales;
      LoadBlockScales<format>(block, &scales);
      AddBlockRuns<format>(args, r, block, scales, args.out + col);
    }
  }
}

// Weight rows and columns that are decoded at a time. Rows lie an odd number of cache lines apart,
// so that a column of the tile does not fall into a few sets of the first cache.
constexpr int kTileCols = 128;
constexpr int kTileStride = kTileCols + 16;

template <QuantFormat format>
void ManyRows(const WeightedSumArgs& args) {
  const int cols = args.weights.cols;
  Clear(args);
  alignas(32) float tile[kCombineRows * kTileStride];
  const float* rows[kCombineRows];
  for (int r = 0; r < kCombineRows; ++r) rows[r] = tile + r * kTileStride;
  for (int first = 0; first < args.num_weight_rows; first += kCombineRows) {
    const int num = Smaller(kCombineRows, args.num_weight_rows - first);
    for (int col = 0; col < cols; col += kTileCols) {
      const int count = Smaller(kTileCols, cols - col);
      for (int r = 0; r < num; ++r) {
        DecodeSpan<format>(args.weights, first + r, col, count, tile + r * kTileStride);
      }
      CombineSpan(ValueArgs{.weights = args.x + first,
                            .weight_stride = args.x_stride,
                            .num_queries = args.num_rows,
                            .limits = nullptr,
                            .values = rows,
                            .num_values = num,
                            .dim = count,
                            .out = args.out + col,
                            .out_stride = args.out_stride},
                  RowSpan{0, num});
    }
  }
}

template <QuantFormat format>
void WeightedSum(const WeightedSumArgs& args) {
  if (args.num_rows > kFewRows) return ManyRows<format>(args);
  if (!FewRows<format, Conversion::kFast>(args)) FewRows<format, Conversion::kExact>(args);
}

template <QuantFormat format>
void WeightedSumOfBlocks(const WeightedSumArgs& args) {
  if (args.num_rows > kFewRows) return ManyRows<format>(args);
  FewRowsOfBlocks<format>(args);
}

template <QuantFormat format>
void AddBlocked(KernelTable* table) {
  table->weighted_sum[static_cast<int>(format)] = WeightedSumOfBlocks<format>;
}

}  // namespace

void AddWeightedSum(KernelTable* table) {
  table->weighted_sum[static_cast<int>(QuantFormat::kF32)] = WeightedSum<QuantFormat::kF32>;
  table->weighted_sum[static_cast<int>(QuantFormat::kBF16)] = WeightedSum<QuantFormat::kBF16>;
  table->weighted_sum[static_cast<int>(QuantFormat::kF16)] = WeightedSum<QuantFormat::kF16>;
  table->weighted_sum[static_cast<int>(QuantFormat::kF8Block128)] =
      WeightedSum<QuantFormat::kF8Block128>;
  table->weighted_sum[static_cast<int>(QuantFormat::kInt8Group)] =
      ManyRows<QuantFormat::kInt8Group>;
  table->weighted_sum[static_cast<int>(QuantFormat::kInt4Group)] =
      ManyRows<QuantFormat::kInt4Group>;
  AddBlocked<QuantFormat::kQ4_0>(table);
  AddBlocked<QuantFormat::kQ4_1>(table);
  AddBlocked<QuantFormat::kQ5_0>(table);
  AddBlocked<QuantFormat::kQ5_1>(table);
  AddBlocked<QuantFormat::kQ8_0>(table);
  AddBlocked<QuantFormat::kQ2_K>(table);
  AddBlocked<QuantFormat::kQ3_K>(table);
  AddBlocked<QuantFormat::kQ4_K>(table);
  AddBlocked<QuantFormat::kQ5_K>(table);
  AddBlocked<QuantFormat::kQ6_K>(table);
  AddBlocked<QuantFormat::kIq4Nl>(table);
  AddBlocked<QuantFormat::kIq4Xs>(table);
}

}  // namespace hadal::avx2
