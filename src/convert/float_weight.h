// Floats as a weight, so that the products of a backend serve for any matrix.
#pragma once

#include "tensor/quantized_matrix.h"

namespace hadal {

// [rows, cols] without gaps; points to `data`.
inline QuantizedMatrix FloatWeight(const float* data, int rows, int cols) {
  QuantizedMatrix matrix;
  matrix.format = QuantFormat::kF32;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.data = reinterpret_cast<const std::byte*>(data);
  return matrix;
}

}  // namespace hadal
