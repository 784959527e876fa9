// Activations rounded to bytes, and their products with grouped weights, in plain loops.
#include <algorithm>
#include <cmath>

#include "kernels/reference/decode.h"
#include "kernels/reference/parts.h"

namespace hadal::reference {
namespace {

constexpr float kSmallestMagnitude = 1e-30f;

void QuantizeGroup(const float* x, int count, int8_t* codes, float* scale) {
  float largest = 0;
  for (int i = 0; i < count; ++i) {
    const float magnitude = std::fabs(x[i]);
    if (std::isnan(largest) || magnitude > largest || std::isnan(magnitude)) {
      largest = std::isnan(largest) ? largest : magnitude;
    }
  }
  if (largest < kSmallestMagnitude) {
    *scale = 0;
    std::fill_n(codes, count, int8_t{0});
    return;
  }
  *scale = largest / 127.0f;
  const float factor = 127.0f / largest;
  for (int i = 0; i < count; ++i) {
    const float code = std::nearbyint(x[i] * factor);
    codes[i] = std::fabs(code) <= 127.0f ? static_cast<int8_t>(code) : int8_t{-128};
  }
}

void QuantizeRow(const float* x, int cols, int group_size, const QuantizedRow& out) {
  for (int begin = 0; begin < cols; begin += group_size) {
    QuantizeGroup(x + begin, std::min(group_size, cols - begin), out.codes + begin,
                  out.scales + begin / group_size);
  }
  constexpr int kWordCols[4] = {0, 2, 1, 3};
  for (int i = 0; i < cols; ++i) out.words[i] = out.codes[i - i % 4 + kWordCols[i % 4]];
  for (int begin = 0; begin < cols; begin += 32) {
    int sums[2] = {};
    for (int i = 0; i < 32; ++i) sums[i % 4 / 2] += out.codes[begin + i];
    out.pair_sums[begin / 16] = static_cast<int16_t>(sums[0]);
    out.pair_sums[begin / 16 + 1] = static_cast<int16_t>(sums[1]);
  }
}

template <QuantFormat format>
float Product(const WeightRows& weights, int output, const QuantizedRows& x, int64_t row) {
  float sum = 0;
  for (int g = 0; g < x.num_groups; ++g) {
    const GroupOfRow group = FindGroup<format>(weights, output, g);
    const int begin = g * weights.group_size;
    const int size = std::min(weights.group_size, weights.cols - begin);
    const int8_t* codes = x.codes + row * x.cols + begin;
    int32_t dot = 0;
    for (int i = 0; i < size; ++i) dot += GroupedCode<format>(group, i) * codes[i];
    sum = std::fma(static_cast<float>(dot), group.scale * x.scales[row * x.num_groups + g], sum);
  }
  return sum;
}

template <QuantFormat format>
void GroupedMatMul(const GroupedMatMulArgs& args) {
  for (int t = 0; t < args.num_rows; ++t) {
    const int64_t row = args.row_ids != nullptr ? args.row_ids[t] : t;
    for (int o = 0; o < args.num_outputs; ++o) {
      const float product = Product<format>(args.weights, o, args.x, row);
      float* out = args.out + t * args.out_stride + o;
      *out = args.accumulate ? *out + product : product;
    }
  }
}

int32_t IntegerProbe(int64_t rounds) {
  int32_t sums[8] = {};
  for (int64_t i = 0; i < rounds; ++i) {
    for (int k = 0; k < 8; ++k) sums[k] += (static_cast<int32_t>(i) & 15) * (k + 1);
  }
  int32_t total = 0;
  for (const int32_t sum : sums) total ^= sum;
  return total;
}

}  // namespace

void AddGrouped(KernelTable* table) {
  table->quantize_row = QuantizeRow;
  table->grouped_matmul[GroupedIdx(QuantFormat::kInt8Group)] =
      GroupedMatMul<QuantFormat::kInt8Group>;
  table->grouped_matmul[GroupedIdx(QuantFormat::kInt4Group)] =
      GroupedMatMul<QuantFormat::kInt4Group>;
  table->integer_probe = IntegerProbe;
  table->integer_probe_ops = 16;
}

}  // namespace hadal::reference
