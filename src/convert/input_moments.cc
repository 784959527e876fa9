#include "convert/input_moments.h"

#include "base/check.h"
#include "convert/float_weight.h"

namespace hadal {

InputMoments::InputMoments(int cols)
    : cols_(cols), moments_(static_cast<size_t>(cols) * static_cast<size_t>(cols)) {}

void InputMoments::Add(ConstFloatMatrix x, Backend* backend) {
  HADAL_CHECK(x.cols == cols_);
  if (x.rows == 0) return;
  // The backend multiplies with weights whose rows are outputs: x^T times (x^T)^T.
  transposed_.resize(static_cast<size_t>(x.rows) * static_cast<size_t>(cols_));
  for (int row = 0; row < x.rows; ++row) {
    const float* values = x.row_data(row);
    for (int col = 0; col < cols_; ++col) {
      transposed_[static_cast<size_t>(col) * static_cast<size_t>(x.rows) +
                  static_cast<size_t>(row)] = values[col];
    }
  }
  const ConstFloatMatrix transposed = {transposed_.data(), cols_, x.rows, x.rows};
  backend->MatMulAdd(transposed, FloatWeight(transposed_.data(), cols_, x.rows), matrix());
  num_rows_ += x.rows;
}

void InputMoments::Blend(const InputMoments& other, double share) {
  HADAL_CHECK(other.cols_ == cols_);
  if (other.num_rows_ == 0) return;
  const auto factor =
      static_cast<float>(share * static_cast<double>(std::max<int64_t>(1, num_rows_)) /
                         static_cast<double>(other.num_rows_));
  for (size_t i = 0; i < moments_.size(); ++i) moments_[i] += factor * other.moments_[i];
}

}  // namespace hadal
