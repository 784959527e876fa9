#include "tensor/group_tiles.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/types.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

// Where the block of one group of a tile begins.
int64_t BlockOffset(const GroupShape& shape, int cols, int row, int group) {
  return row / kTileRows * TileBytes(shape, cols) + group * BlockBytes(shape, shape.group_size);
}

// Of the code of row `r` in the tile and column `col` of the group, from the block's begin.
int64_t CodeOffset(QuantFormat format, int r, int col) {
  const int in_step = format == QuantFormat::kInt4Group ? r % 8 : r;
  return col / kStepCols * StepBytes(format) + in_step * kStepCols + col % kStepCols;
}

void SetNibble(std::byte* at, bool upper, int value) {
  const auto bits = static_cast<std::byte>(value);
  *at = upper ? (*at & std::byte{0x0F}) | (bits << 4) : (*at & std::byte{0xF0}) | bits;
}

int Nibble(std::byte at, bool upper) {
  return std::to_integer<int>(upper ? at >> 4 : at & std::byte{0x0F});
}

}  // namespace

int64_t GroupedBytes(const GroupShape& shape, int rows, int cols) {
  HADAL_CHECK(rows >= 1 && cols >= kSmallestGroup && cols % kSmallestGroup == 0);
  return NumTiles(rows) * TileBytes(shape, cols);
}

int NumGroups(const GroupShape& shape, int cols) { return CeilDiv(cols, shape.group_size); }

GroupSpan SpanOfGroup(const GroupShape& shape, int cols, int group) {
  const int begin = group * shape.group_size;
  return {begin, std::min(shape.group_size, cols - begin)};
}

std::optional<GroupShape> ShapeOfTiles(int cols, int64_t tile_bytes) {
  if (cols < kSmallestGroup || cols % kSmallestGroup != 0) return std::nullopt;
  for (const int group_size : {32, 64, 128}) {
    for (const GroupShape& shape : {GroupShape{QuantFormat::kInt4Group, group_size, false},
                                    GroupShape{QuantFormat::kInt4Group, group_size, true},
                                    GroupShape{QuantFormat::kInt8Group, group_size, false}}) {
      if (TileBytes(shape, cols) == tile_bytes) return shape;
    }
  }
  return std::nullopt;
}

void StoreGroup(const GroupShape& shape, int cols, int row, int group, const GroupCodes& codes,
                std::span<std::byte> tiles) {
  const int size = SpanOfGroup(shape, cols, group).size;
  HADAL_CHECK(static_cast<int>(codes.codes.size()) == size);
  const int r = row % kTileRows;
  std::byte* block = tiles.data() + BlockOffset(shape, cols, row, group);
  for (int col = 0; col < size; ++col) {
    const auto code = static_cast<int>(codes.codes[static_cast<size_t>(col)]);
    std::byte* at = block + CodeOffset(shape.format, r, col);
    if (shape.format == QuantFormat::kInt4Group) {
      HADAL_CHECK(code >= 0 && code <= 15);
      SetNibble(at, r >= 8, code);
    } else {
      HADAL_CHECK(code >= -127);
      *at = static_cast<std::byte>(code);
    }
  }
  std::byte* scales = block + CodeBytes(shape, size);
  std::memcpy(scales + 2 * r, &codes.scale_bits, 2);
  if (!shape.has_zero_points) {
    HADAL_CHECK(codes.zero_point == 8);
    return;
  }
  HADAL_CHECK(codes.zero_point >= 0 && codes.zero_point <= 15);
  SetNibble(scales + 2 * kTileRows + r % 8, r >= 8, codes.zero_point);
}

float GroupedElement(const GroupShape& shape, int cols, const std::byte* tiles, int row, int col) {
  const int group = col / shape.group_size, r = row % kTileRows;
  const GroupSpan span = SpanOfGroup(shape, cols, group);
  const std::byte* block = tiles + BlockOffset(shape, cols, row, group);
  const std::byte code = block[CodeOffset(shape.format, r, col - span.begin)];
  const std::byte* scales = block + CodeBytes(shape, span.size);
  uint16_t scale_bits;
  std::memcpy(&scale_bits, scales + 2 * r, 2);
  const float scale = Fp16ToFloat(scale_bits);
  if (shape.format == QuantFormat::kInt8Group) {
    return static_cast<float>(static_cast<int8_t>(code)) * scale;
  }
  const int zero = shape.has_zero_points ? Nibble(scales[2 * kTileRows + r % 8], r >= 8) : 8;
  return static_cast<float>(Nibble(code, r >= 8) - zero) * scale;
}

QuantizedMatrix GroupedView(const GroupShape& shape, int rows, int cols, const std::byte* tiles) {
  QuantizedMatrix view;
  view.format = shape.format;
  view.layout = WeightLayout::kTiles;
  view.rows = rows;
  view.cols = cols;
  view.data = tiles;
  view.group_size = shape.group_size;
  view.has_zero_points = shape.has_zero_points;
  return view;
}

}  // namespace hadal
