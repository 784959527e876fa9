// How products are cut for threads, and weights as the kernels take them.
#pragma once

#include <algorithm>

#include "base/types.h"
#include "kernels/kernel_table.h"
#include "tensor/quantized_matrix.h"

namespace hadal {

// The largest number of outputs that one share of a product has.
inline constexpr int kMaxOutputsPerShare = 64;

// Outputs that one thread takes at a time: at least four shares a thread where there is enough to
// do, so that a late thread costs little, and whole tiles of 16.
inline int OutputsPerShare(int num_outputs, int num_threads) {
  return std::clamp(RoundUp(CeilDiv(num_outputs, 4 * num_threads), kTileRows), kTileRows,
                    kMaxOutputsPerShare);
}

inline WeightRows KernelRows(const QuantizedMatrix& w, int first) {
  return {.data = w.data + w.OffsetOfRow(first),
          .scales = w.scales,
          .scale_stride = w.scale_stride,
          .first_row = w.first_row + first,
          .cols = w.cols,
          .group_size = w.group_size,
          .has_zero_points = w.has_zero_points,
          .is_turned = IsBlocked(w.format) && w.layout == WeightLayout::kTiles};
}

}  // namespace hadal
