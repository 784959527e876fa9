// Codes, scales and zero points of a grouped matrix in their places (block_layout.h tells where):
// slow and clear, used to write such matrices and as the truth for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tensor/block_layout.h"
#include "tensor/quantized_matrix.h"

namespace hadal {

// Bytes of a whole matrix. REQUIRES: rows >= 1, cols a positive multiple of 32.
int64_t GroupedBytes(const GroupShape& shape, int rows, int cols);

// Groups of a row; the columns [begin, begin + size) of group `group`.
int NumGroups(const GroupShape& shape, int cols);
struct GroupSpan {
  int begin = 0, size = 0;
};
GroupSpan SpanOfGroup(const GroupShape& shape, int cols, int group);

// The shape of a stored matrix from the size of its tiles, which no two shapes share unless they
// mean the same. Empty when no shape has this size, or cols is no multiple of 32.
std::optional<GroupShape> ShapeOfTiles(int cols, int64_t tile_bytes);

// One group of one row as stored: kInt8Group codes in [-127, 127] and no zero point, kInt4Group
// codes and zero point in [0, 15] (8 where none is stored).
struct GroupCodes {
  std::span<const int8_t> codes;  // as many as the group has columns
  uint16_t scale_bits = 0;        // binary16
  int zero_point = 8;
};

// Writes it. `tiles` is the whole matrix; rows that fill up the last tile keep zero scales.
// REQUIRES: codes and zero point in range; row and group in the matrix.
void StoreGroup(const GroupShape& shape, int cols, int row, int group, const GroupCodes& codes,
                std::span<std::byte> tiles);

// (code - zero point) * scale, rounded to float once.
float GroupedElement(const GroupShape& shape, int cols, const std::byte* tiles, int row, int col);

// A view of a stored matrix.
QuantizedMatrix GroupedView(const GroupShape& shape, int rows, int cols, const std::byte* tiles);

}  // namespace hadal
