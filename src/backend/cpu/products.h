// Products of the rows of a step with weights of any format.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cpu/rounded_rows.h"
#include "kernels/kernel_table.h"
#include "sys/thread_pool.h"

namespace hadal {

// The rows that a product takes: float32, and rounded where the weight wants that.
struct ProductInput {
  const float* x = nullptr;
  int64_t x_stride = 0;
  int num_rows = 0;
  const std::byte* rounded = nullptr;  // null: the product takes x
  int64_t rounded_row_bytes = 0;
  const int32_t* row_ids = nullptr;  // of rounded rows; see RoundedMatMulArgs
};

// Outputs [first, first + count) of w, on the calling thread. REQUIRES: first is a multiple of 16
// when w is grouped.
struct ProductPart {
  const QuantizedMatrix& w;
  int first, count;
  float* out;  // [num_rows, count], rows out_stride apart
  int64_t out_stride;
  bool accumulate;
};
void RunProduct(const KernelTable& kernels, const ProductInput& input, const ProductPart& part);

// Scratch and the choice of how weights are met.
class Products {
 public:
  Products(const KernelTable& kernels, ActivationFormat activations, ThreadPool* pool)
      : kernels_(kernels), activations_(activations), pool_(pool) {}

  // kResourceExhausted when memory is short.
  Status Prepare(const BackendLimits& limits);

  // out = x * w^T, or += with `accumulate`.
  void MatMul(ConstFloatMatrix x, const QuantizedMatrix& w, bool accumulate, FloatMatrix out);
  void MatMulEach(ConstFloatMatrix x, std::span<const ProductTarget> targets);
  // out = silu(x * gate^T) * (x * up^T).
  void GatedMatMul(ConstFloatMatrix x, const QuantizedMatrix& gate, const QuantizedMatrix& up,
                   FloatMatrix out);

  // Whether products with w take rounded rows.
  bool TakesRounded(const QuantizedMatrix& w) const {
    return w.group_size > 0 && activations_ == ActivationFormat::kInt8;
  }
  // Whether the same input, rounded or not, serves both.
  bool TakeTheSame(const QuantizedMatrix& a, const QuantizedMatrix& b) const {
    if (TakesRounded(a) != TakesRounded(b)) return false;
    return !TakesRounded(a) || (a.format == b.format && a.group_size == b.group_size);
  }

 private:
  // x for products with w; rounds it where that is needed.
  ProductInput InputFor(ConstFloatMatrix x, const QuantizedMatrix& w);

  const KernelTable& kernels_;
  ActivationFormat activations_;
  ThreadPool* pool_;
  RoundedRows rounded_;
  Buffer up_;  // per worker [max_step_tokens, kMaxOutputsPerShare]: one half of GatedMatMul
  int max_step_tokens_ = 0;
};

}  // namespace hadal
