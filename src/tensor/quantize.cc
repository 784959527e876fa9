#include "tensor/quantize.h"

#include <cstring>

#include "base/check.h"
#include "tensor/group_tiles.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

template <class T>
T LoadAt(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

}  // namespace

float ElementAt(const QuantizedMatrix& matrix, int row, int col) {
  HADAL_CHECK(row >= 0 && row < matrix.rows && col >= 0 && col < matrix.cols);
  const int64_t i = int64_t{row} * matrix.cols + col;
  switch (matrix.format) {
    case QuantFormat::kF32:
      return LoadAt<float>(matrix.data, i);
    case QuantFormat::kBF16:
      return Bf16ToFloat(LoadAt<uint16_t>(matrix.data, i));
    case QuantFormat::kF16:
      return Fp16ToFloat(LoadAt<uint16_t>(matrix.data, i));
    case QuantFormat::kF8Block128: {
      const int64_t block_row = (matrix.first_row + row) / kF8BlockSize;
      const int64_t block = block_row * matrix.scale_stride + col / kF8BlockSize;
      return E4m3ToFloat(LoadAt<uint8_t>(matrix.data, i)) * LoadAt<float>(matrix.scales, block);
    }
    case QuantFormat::kInt8Group:
    case QuantFormat::kInt4Group:
      return GroupedElement(matrix.group_shape(), matrix.cols, matrix.data, row, col);
    default:
      HADAL_CHECK(false);  // blocked formats: formats/ggml_blocks.h
  }
  return 0;
}

std::vector<float> Dequantize(const QuantizedMatrix& matrix) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(matrix.rows) * static_cast<size_t>(matrix.cols));
  for (int row = 0; row < matrix.rows; ++row) {
    for (int col = 0; col < matrix.cols; ++col) values.push_back(ElementAt(matrix, row, col));
  }
  return values;
}

}  // namespace hadal
