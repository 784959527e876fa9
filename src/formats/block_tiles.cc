#include "formats/block_tiles.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "formats/ggml_blocks.h"
#include "tensor/group_tiles.h"

namespace hadal {
namespace {

constexpr int kBlock = 32;

// Codes of a block as they stand for value / scale: the decoder's values of a block whose scale is
// one.
std::array<float, kBlock> CodesOf(const GgmlTypeInfo& type, std::span<const std::byte> block) {
  std::array<std::byte, 34> copy = {};
  std::memcpy(copy.data(), block.data(), block.size());
  const uint16_t one = FloatToFp16(1.0f);
  std::memcpy(copy.data(), &one, sizeof(one));
  std::array<float, kBlock> codes;
  DecodeGgmlBlocks(type.type, std::span(copy).first(block.size()), codes);
  return codes;
}

}  // namespace

std::optional<GroupShape> ExactTilesOfBlocks(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return GroupShape{QuantFormat::kInt4Group, kBlock, false};
    case DType::kQ5_0:
    case DType::kQ8_0:
    case DType::kIq4Nl:
      return GroupShape{QuantFormat::kInt8Group, kBlock, false};
    default:
      return std::nullopt;
  }
}

bool BlocksToTiles(DType dtype, std::span<const std::byte> bytes, int rows, int cols,
                   std::span<std::byte> tiles) {
  const std::optional<GgmlTypeInfo> type = FindGgmlType(dtype);
  const std::optional<GroupShape> shape = ExactTilesOfBlocks(dtype);
  HADAL_CHECK(type && shape);
  const int offset = shape->format == QuantFormat::kInt4Group ? 8 : 0;
  const auto block_bytes = static_cast<size_t>(type->block_bytes);
  size_t at = 0;
  for (int row = 0; row < rows; ++row) {
    for (int group = 0; group < cols / kBlock; ++group, at += block_bytes) {
      const std::span<const std::byte> block = bytes.subspan(at, block_bytes);
      GroupCodes stored;
      std::memcpy(&stored.scale_bits, block.data(), sizeof(stored.scale_bits));
      if (!std::isfinite(Fp16ToFloat(stored.scale_bits))) return false;
      std::array<int8_t, kBlock> codes;
      const std::array<float, kBlock> values = CodesOf(*type, block);
      for (size_t i = 0; i < codes.size(); ++i) {
        if (values[i] < -127) return false;
        codes[i] = static_cast<int8_t>(static_cast<int>(values[i]) + offset);
      }
      stored.codes = codes;
      StoreGroup(*shape, cols, row, group, stored, tiles);
    }
  }
  return true;
}

}  // namespace hadal
