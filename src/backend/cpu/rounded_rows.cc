#include "backend/cpu/rounded_rows.h"

#include <algorithm>

#include "base/check.h"
#include "base/types.h"

namespace hadal {
namespace {

// No kernel set takes more for a column, scales included.
constexpr int kMaxBytesPerCol = 3;

}  // namespace

Status RoundedRows::Prepare(int max_rows, int max_cols) {
  const int64_t row_bytes = int64_t{kMaxBytesPerCol} * RoundUp(max_cols, kSmallestGroup);
  ASSIGN_OR_RETURN(buffer_, Buffer::Allocate(max_rows * row_bytes));
  return Status::Ok();
}

void RoundedRows::Round(const KernelTable& kernels, ConstFloatMatrix x, const GroupShape& shape,
                        ThreadPool* pool) {
  const int idx = RoundedIdx(shape.format);
  row_bytes_ = kernels.rounded_row_bytes[idx](shape.format, shape.group_size, x.cols);
  HADAL_CHECK(x.rows * row_bytes_ <= buffer_.bytes());
  ForRows(x.rows, pool, [&](int t) {
    kernels.round_row[idx]({.x = x.row_data(t),
                            .cols = x.cols,
                            .format = shape.format,
                            .group_size = shape.group_size,
                            .out = buffer_.data() + t * row_bytes_});
  });
}

}  // namespace hadal
