// A weight as the kernels see it: bytes that something else owns (a mapped file or a Buffer), and
// what they mean.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "tensor/block_layout.h"
#include "tensor/matrix.h"

namespace hadal {

struct QuantizedMatrix {
  QuantFormat format = QuantFormat::kF32;
  WeightLayout layout = WeightLayout::kRows;
  Device device = Device::kCpu;
  int rows = 0, cols = 0;           // output features, input features
  const std::byte* data = nullptr;  // first element of row 0; not necessarily aligned
  // kF8Block128: float scales [ceil(all rows / 128), scale_stride], unaligned; row r of this matrix
  // uses scale row (first_row + r) / 128. Null for the other formats.
  const std::byte* scales = nullptr;
  int scale_stride = 0;
  int first_row = 0;  // where row 0 stands in the matrix that `scales` describes
  // Grouped formats, whose layout is kTiles and whose scales lie among the codes. Of a blocked
  // format 32 where products may round their inputs to bytes, in groups of so many.
  int group_size = 0;
  bool has_zero_points = false;

  bool empty() const { return data == nullptr; }
  GroupShape group_shape() const { return {format, group_size, has_zero_points}; }

  // Bytes of all rows.
  int64_t bytes() const {
    if (!IsGrouped(format)) return rows * RowBytesOf(format, cols);
    return NumTiles(rows) * TileBytes(group_shape(), cols);
  }

  // Bytes in front of row `first`. REQUIRES: of a layout of tiles a multiple of 16.
  int64_t OffsetOfRow(int first) const {
    HADAL_DCHECK(layout == WeightLayout::kRows || first % kTileRows == 0);
    if (!IsGrouped(format)) return first * RowBytesOf(format, cols);
    return first / kTileRows * TileBytes(group_shape(), cols);
  }

  // One head's part, one expert's, one rank's. REQUIRES: as OffsetOfRow.
  QuantizedMatrix Rows(int first, int count) const {
    HADAL_DCHECK(first >= 0 && count >= 0 && first + count <= rows);
    QuantizedMatrix part = *this;
    part.rows = count;
    part.data = data + OffsetOfRow(first);
    part.first_row = first_row + first;
    return part;
  }
};

}  // namespace hadal
