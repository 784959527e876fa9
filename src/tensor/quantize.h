// Between floats and the number formats of weights: slow and clear, the truth for tests.
#pragma once

#include <vector>

#include "tensor/quantized_matrix.h"

namespace hadal {

// Element (row, col) as the format defines it: of kF8Block128 the code's value times the scale of
// its block. Specification, 7.3. REQUIRES: the element lies in the matrix.
float ElementAt(const QuantizedMatrix& matrix, int row, int col);

// All elements, row by row.
std::vector<float> Dequantize(const QuantizedMatrix& matrix);

}  // namespace hadal
