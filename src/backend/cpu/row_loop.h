// Loops over the rows of a step.
#pragma once

#include <algorithm>

#include "base/types.h"
#include "sys/thread_pool.h"

namespace hadal {

// Below this many rows a loop over rows runs on the calling thread: starting the workers costs
// more.
inline constexpr int kMinRowsToShare = 8;

// body(row) for every row of a step.
template <class Body>
void ForRows(int num_rows, ThreadPool* pool, const Body& body) {
  if (num_rows < kMinRowsToShare) {
    for (int row = 0; row < num_rows; ++row) body(row);
    return;
  }
  const int rows_per_share = std::max(1, num_rows / (4 * pool->num_threads()));
  pool->ParallelFor(CeilDiv(num_rows, rows_per_share), [&](int share, int) {
    const int end = std::min(num_rows, (share + 1) * rows_per_share);
    for (int row = share * rows_per_share; row < end; ++row) body(row);
  });
}

}  // namespace hadal
