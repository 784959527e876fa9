#include "tensor/row_rounder.h"

#include <algorithm>

#include "base/check.h"
#include "base/types.h"
#include "sys/thread_pool.h"

namespace hadal {

struct RowRounder::State {
  explicit State(int num_threads) : pool(num_threads) {}
  ThreadPool pool;
};

RowRounder::RowRounder(int num_threads) : state_(std::make_unique<State>(num_threads)) {}
RowRounder::~RowRounder() = default;

void RowRounder::Round(const GroupShape& shape, int cols, int first_row, int num_rows,
                       const float* values, ScaleChoice choice, std::span<std::byte> tiles) {
  HADAL_CHECK(first_row % kTileRows == 0);
  state_->pool.ParallelFor(CeilDiv(num_rows, kTileRows), [&](int tile, int) {
    const int row = tile * kTileRows;
    RoundRows(shape, cols, first_row + row, std::min(kTileRows, num_rows - row),
              values + int64_t{row} * cols, choice, tiles);
  });
}

}  // namespace hadal
