// Inputs of products, rounded to bytes once for all products that take them.
#pragma once

#include "backend/cpu/row_loop.h"
#include "base/status.h"
#include "kernels/kernel_table.h"
#include "sys/thread_pool.h"
#include "tensor/buffer.h"
#include "tensor/matrix.h"

namespace hadal {

class RoundedRows {
 public:
  // kResourceExhausted when memory is short.
  Status Prepare(int max_rows, int max_cols);

  // Rounds all rows of x for a weight of that shape; they stay until the next call. REQUIRES: x is
  // within the sizes of Prepare.
  void Round(const KernelTable& kernels, ConstFloatMatrix x, const GroupShape& shape,
             ThreadPool* pool);

  const std::byte* data() const { return buffer_.data(); }
  int64_t row_bytes() const { return row_bytes_; }

 private:
  Buffer buffer_;
  int64_t row_bytes_ = 0;
};

}  // namespace hadal
