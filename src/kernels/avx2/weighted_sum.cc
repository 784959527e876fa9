// Products with the transposed weight, read as it is stored: W_UK^T q of the absorbed attention.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/weights.h"

namespace hadal::avx2 {
namespace {

// Weight rows at a time: each output is loaded and stored once for so many of them.
constexpr int kGroup = 4;

// Adds weight rows [r, r + kRows) to `count` <= 16 columns from `col` on; p[i] are their bytes
// there. The sums start from zero when r is 0.
template <QuantFormat format, int kRows>
void AddRows(const WeightedSumArgs& args, int r, int col, int count, const char* const* p,
             const Vec* scales) {
  VecPair w[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) w[i] = LoadExact<format>(p[i], scales[i]);
  for (int t = 0; t < args.num_rows; ++t) {
    const float* x = args.x + t * args.x_stride + r;
    float* out = args.out + t * args.out_stride + col;
    Vec low = r == 0 ? Set(0.0f) : Load(out, count);
    Vec high = r == 0 || count <= 8 ? Set(0.0f) : Load(out + 8, count - 8);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const Vec xv = Set(x[i]);
      low = MulAdd(xv, w[i].low, low);
      high = MulAdd(xv, w[i].high, high);
    }
    Store(out, low, count);
    if (count > 8) Store(out + 8, high, count - 8);
  }
}

template <QuantFormat format, int kRows>
void AddRowGroup(const WeightedSumArgs& args, int r) {
  constexpr int kBytes = Reader<format>::kBytes;
  const int cols = args.weights.cols;
  const char* rows[kRows];
  const char* p[kRows];
  Vec scales[kRows];
  for (int i = 0; i < kRows; ++i) {
    rows[i] = RowBytes<format>(args.weights, r + i);
    scales[i] = Set(0.0f);
  }
  for (int col = 0; col < cols; col += 16) {
    const int count = Smaller(16, cols - col);
    char buffers[kRows][64];
    for (int i = 0; i < kRows; ++i) {
      if (format == QuantFormat::kF8Block128 && col % kF8BlockSize == 0) {
        scales[i] = Set(LoadScale(RowScales(args.weights, r + i), col / kF8BlockSize));
      }
      p[i] = rows[i] + int64_t{col} * kBytes;
      if (count < 16) p[i] = PaddedTail<kBytes>(p[i], count, buffers[i]);
    }
    AddRows<format, kRows>(args, r, col, count, p, scales);
  }
}

template <QuantFormat format>
void WeightedSum(const WeightedSumArgs& args) {
  int r = 0;
  for (; r + kGroup <= args.num_weight_rows; r += kGroup) AddRowGroup<format, kGroup>(args, r);
  for (; r < args.num_weight_rows; ++r) AddRowGroup<format, 1>(args, r);
}

}  // namespace

void AddWeightedSum(KernelTable* table) {
  table->weighted_sum[static_cast<int>(QuantFormat::kF32)] = WeightedSum<QuantFormat::kF32>;
  table->weighted_sum[static_cast<int>(QuantFormat::kBF16)] = WeightedSum<QuantFormat::kBF16>;
  table->weighted_sum[static_cast<int>(QuantFormat::kF16)] = WeightedSum<QuantFormat::kF16>;
  table->weighted_sum[static_cast<int>(QuantFormat::kF8Block128)] =
      WeightedSum<QuantFormat::kF8Block128>;
}

}  // namespace hadal::avx2
