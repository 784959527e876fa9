// Products with stored weights, in plain loops.
#include <algorithm>
#include <cmath>

#include "kernels/reference/decode.h"
#include "kernels/reference/lane_sum.h"
#include "kernels/reference/parts.h"

namespace hadal::reference {
namespace {

// A span of columns is decoded once for so many rows of x; a multiple of eight, so that the lanes
// of a sum do not depend on it.
constexpr int kSpan = 256;
constexpr int kRows = 32;

template <QuantFormat format>
void MatMul(const MatMulArgs& args) {
  const int cols = args.weights.cols;
  float span[kSpan];
  for (int o = 0; o < args.num_outputs; ++o) {
    for (int first = 0; first < args.num_rows; first += kRows) {
      const int num_rows = std::min(kRows, args.num_rows - first);
      LaneSum sums[kRows];
      for (int col = 0; col < cols; col += kSpan) {
        const int count = std::min(kSpan, cols - col);
        DecodeSpan<format>(args.weights, o, col, count, span);
        for (int t = 0; t < num_rows; ++t) {
          sums[t].AddProducts(args.x + (first + t) * args.x_stride + col, span, count);
        }
      }
      for (int t = 0; t < num_rows; ++t) {
        float* out = args.out + (first + t) * args.out_stride + o;
        *out = args.accumulate ? *out + sums[t].Total() : sums[t].Total();
      }
    }
  }
}

template <QuantFormat format>
void WeightedSum(const WeightedSumArgs& args) {
  const int cols = args.weights.cols;
  for (int t = 0; t < args.num_rows; ++t) {
    std::fill_n(args.out + t * args.out_stride, cols, 0.0f);
  }
  float span[kSpan];
  for (int r = 0; r < args.num_weight_rows; ++r) {
    for (int col = 0; col < cols; col += kSpan) {
      const int count = std::min(kSpan, cols - col);
      DecodeSpan<format>(args.weights, r, col, count, span);
      for (int t = 0; t < args.num_rows; ++t) {
        const float x = args.x[t * args.x_stride + r];
        float* out = args.out + t * args.out_stride + col;
        for (int i = 0; i < count; ++i) out[i] = std::fma(x, span[i], out[i]);
      }
    }
  }
}

template <QuantFormat format>
void DecodeRow(const WeightRows& weights, int row, float* out) {
  DecodeSpan<format>(weights, row, 0, weights.cols, out);
}

template <QuantFormat format>
void AddFormat(KernelTable* table) {
  constexpr auto kIdx = static_cast<int>(format);
  table->matmul[kIdx] = MatMul<format>;
  table->weighted_sum[kIdx] = WeightedSum<format>;
  table->decode_row[kIdx] = DecodeRow<format>;
}

}  // namespace

void AddProducts(KernelTable* table) {
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

}  // namespace hadal::reference
