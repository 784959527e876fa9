// Second moments of the inputs of a matrix: which errors of its weights show.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "tensor/matrix.h"

namespace hadal {

// H = sum over rows x of x^T x, [cols, cols], symmetric. An error dW of a weight costs
// sum over its rows e of e H e^T on the text that was seen.
class InputMoments {
 public:
  InputMoments() = default;
  explicit InputMoments(int cols);

  int cols() const { return cols_; }
  int64_t num_rows() const { return num_rows_; }
  FloatMatrix matrix() { return {moments_.data(), cols_, cols_, cols_}; }
  ConstFloatMatrix matrix() const { return {moments_.data(), cols_, cols_, cols_}; }

  // Adds the rows of x [rows, cols].
  void Add(ConstFloatMatrix x, Backend* backend);

  // Adds `share` times the moments of another, brought to this one's number of rows.
  void Blend(const InputMoments& other, double share);

 private:
  int cols_ = 0;
  int64_t num_rows_ = 0;
  std::vector<float> moments_, transposed_;
};

}  // namespace hadal
