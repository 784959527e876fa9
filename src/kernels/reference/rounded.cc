// Activations rounded to bytes, and their products with grouped and blocked weights, in plain
// loops.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/reference/blocks.h"
#include "kernels/reference/decode.h"
#include "kernels/reference/parts.h"

namespace hadal::reference {
namespace {

constexpr float kSmallestMagnitude = 1e-30f;

// A rounded row is a chain of blocks, one per group: the codes, then the scale.
int64_t BlockBytesOf(int group_cols) { return group_cols + static_cast<int64_t>(sizeof(float)); }

int64_t RoundedRowBytes(QuantFormat, int group_size, int cols) {
  const int num_groups = (cols + group_size - 1) / group_size;
  return cols + num_groups * static_cast<int64_t>(sizeof(float));
}

float LargestMagnitude(const float* x, int count) {
  float largest = 0;
  for (int i = 0; i < count; ++i) {
    const float magnitude = std::fabs(x[i]);
    if (std::isnan(magnitude)) return magnitude;
    largest = std::max(largest, magnitude);
  }
  return largest;
}

void RoundGroup(const float* x, int count, std::byte* block) {
  const float largest = LargestMagnitude(x, count);
  const bool is_zero = largest < kSmallestMagnitude;
  const float scale = is_zero ? 0.0f : largest / 127.0f;
  const float factor = is_zero ? 0.0f : 127.0f / largest;
  for (int i = 0; i < count; ++i) {
    const float code = std::nearbyint(x[i] * factor);
    block[i] = static_cast<std::byte>(std::fabs(code) <= 127.0f ? static_cast<int>(code) : -128);
  }
  std::memcpy(block + count, &scale, sizeof(scale));
}

void RoundRow(const RoundArgs& args) {
  for (int begin = 0; begin < args.cols; begin += args.group_size) {
    RoundGroup(args.x + begin, std::min(args.group_size, args.cols - begin),
               args.out + begin / args.group_size * BlockBytesOf(args.group_size));
  }
}

// Block `idx` of row `output`, as it lies in a file.
template <QuantFormat format>
void CopyBlock(const WeightRows& weights, int output, int idx, unsigned char* block) {
  constexpr int kBytes = SizeOfBlock(format).bytes;
  const int64_t row_bytes = RowBytesOf(format, weights.cols);
  const auto* data = static_cast<const unsigned char*>(weights.data);
  if (!weights.is_turned) {
    std::memcpy(block, data + output * row_bytes + idx * kBytes, kBytes);
    return;
  }
  const unsigned char* eight = data + output / 8 * 8 * row_bytes + int64_t{8} * idx * kBytes;
  for (int byte = 0; byte < kBytes; ++byte) {
    block[byte] = eight[TurnedOffset(format, output % 8, byte)];
  }
}

// With row `output` of a blocked weight.
template <QuantFormat format>
float BlockedProduct(const WeightRows& weights, int output, const std::byte* x) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  constexpr int kRun = 32, kCols = ScaleElements(format);
  float sum = 0;
  unsigned char block[kSize.bytes];
  for (int begin = 0; begin < weights.cols; begin += kCols) {
    if (begin % kSize.elements == 0) {
      CopyBlock<format>(weights, output, begin / kSize.elements, block);
    }
    const std::byte* run = x + begin / kRun * BlockBytesOf(kRun);
    const auto x_scale = LoadUnaligned<float>(run + kRun, 0);
    int32_t dot = 0, x_sum = 0;
    BlockCode part = {};
    for (int i = 0; i < kCols; ++i) {
      const int x_code = static_cast<int8_t>(run[begin % kRun + i]);
      part = BlockCodeAt<format>(block, begin % kSize.elements + i);
      dot += part.code * x_code;
      x_sum += x_code;
    }
    sum = std::fma(static_cast<float>(dot), part.scale * x_scale, sum);
    if constexpr (HasMin(format)) {
      sum = std::fma(part.min, x_scale * static_cast<float>(x_sum), sum);
    }
  }
  return sum;
}

// With output `output` of a grouped weight.
template <QuantFormat format>
float GroupedProduct(const WeightRows& weights, int output, const std::byte* x) {
  float sum = 0;
  for (int begin = 0; begin < weights.cols; begin += weights.group_size) {
    const int g = begin / weights.group_size;
    const GroupOfRow group = FindGroup<format>(weights, output, g);
    const int size = std::min(weights.group_size, weights.cols - begin);
    const std::byte* block = x + g * BlockBytesOf(weights.group_size);
    int32_t dot = 0;
    for (int i = 0; i < size; ++i) {
      dot += GroupedCode<format>(group, i) * static_cast<int8_t>(block[i]);
    }
    const auto x_scale = LoadUnaligned<float>(block + size, 0);
    sum = std::fma(static_cast<float>(dot), group.scale * x_scale, sum);
  }
  return sum;
}

template <QuantFormat format>
void RoundedMatMul(const RoundedMatMulArgs& args) {
  for (int t = 0; t < args.num_rows; ++t) {
    const int64_t row = args.row_ids != nullptr ? args.row_ids[t] : t;
    for (int o = 0; o < args.num_outputs; ++o) {
      const std::byte* x = args.x + row * args.row_bytes;
      float product = 0;
      if constexpr (IsBlocked(format)) {
        product = BlockedProduct<format>(args.weights, o, x);
      } else {
        product = GroupedProduct<format>(args.weights, o, x);
      }
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

template <QuantFormat format>
void AddFormat(KernelTable* table) {
  table->rounded_matmul[RoundedIdx(format)] = RoundedMatMul<format>;
  if constexpr (IsBlocked(format)) {
    table->turned_matmul[BlockedIdx(format)] = RoundedMatMul<format>;
  }
}

}  // namespace

void AddRounded(KernelTable* table) {
  for (int i = 0; i < kNumRoundedFormats; ++i) {
    table->rounded_row_bytes[i] = RoundedRowBytes;
    table->round_row[i] = RoundRow;
  }
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
  table->integer_probe = IntegerProbe;
  table->integer_probe_ops = 16;
}

}  // namespace hadal::reference
