// Stored weights to float, one element at a time: exact and clear.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/kernel_table.h"
#include "kernels/reference/blocks.h"
#include "kernels/reference/decode_half.h"

namespace hadal::reference {

// Reads a T that may lie at any address.
template <class T>
T LoadUnaligned(const void* base, int64_t idx) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + idx * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

inline float DecodeBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// E4M3FN: no infinities, NaN is 0x7F and 0xFF. Specification, 7.1.
inline float DecodeE4m3(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const uint32_t exponent = (code >> 3) & 0xF, mantissa = code & 0x7;
  if ((code & 0x7F) == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000u);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (mantissa << 20));
}

// Codes, scale and zero point of one row in one group of a grouped weight; block_layout.h says
// where they are.
struct GroupOfRow {
  const unsigned char* codes;  // of this row's tile
  int row_in_tile;
  float scale;
  int zero_point;
};

template <QuantFormat format>
GroupOfRow FindGroup(const WeightRows& weights, int row, int group) {
  const GroupShape shape = {format, weights.group_size, weights.has_zero_points};
  const int rest = weights.cols - group * shape.group_size;
  const int size = rest < shape.group_size ? rest : shape.group_size;
  const auto* block = static_cast<const unsigned char*>(weights.data) +
                      row / kTileRows * TileBytes(shape, weights.cols) +
                      group * BlockBytes(shape, shape.group_size);
  const int r = row % kTileRows;
  const unsigned char* scales = block + CodeBytes(shape, size);
  GroupOfRow found = {block, r, DecodeF16(LoadUnaligned<uint16_t>(scales, r)), 0};
  if (format == QuantFormat::kInt4Group) {
    const int pair = shape.has_zero_points ? scales[2 * kTileRows + r % 8] : 0x88;
    found.zero_point = r >= 8 ? pair >> 4 : pair & 15;
  }
  return found;
}

// Code minus zero point of column `col` of the group.
template <QuantFormat format>
int GroupedCode(const GroupOfRow& group, int col) {
  const int64_t step = col / kStepCols * StepBytes(format);
  const int r = group.row_in_tile;
  if constexpr (format == QuantFormat::kInt8Group) {
    return static_cast<int8_t>(group.codes[step + r * kStepCols + col % kStepCols]);
  } else {
    const int pair = group.codes[step + r % 8 * kStepCols + col % kStepCols];
    return (r >= 8 ? pair >> 4 : pair & 15) - group.zero_point;
  }
}

// Element (row, col) of a stored weight.
template <QuantFormat format>
float Element(const WeightRows& weights, int row, int col) {
  const int64_t idx = static_cast<int64_t>(row) * weights.cols + col;
  if constexpr (format == QuantFormat::kF32) {
    return LoadUnaligned<float>(weights.data, idx);
  } else if constexpr (format == QuantFormat::kBF16) {
    return DecodeBf16(LoadUnaligned<uint16_t>(weights.data, idx));
  } else if constexpr (format == QuantFormat::kF16) {
    return DecodeF16(LoadUnaligned<uint16_t>(weights.data, idx));
  } else if constexpr (IsGrouped(format)) {
    const GroupOfRow group = FindGroup<format>(weights, row, col / weights.group_size);
    return static_cast<float>(GroupedCode<format>(group, col % weights.group_size)) * group.scale;
  } else if constexpr (IsBlocked(format)) {
    constexpr BlockSize kSize = SizeOfBlock(format);
    const int64_t block = idx / kSize.elements;  // rows are whole blocks
    return BlockElement<format>(
        static_cast<const unsigned char*>(weights.data) + block * kSize.bytes,
        static_cast<int>(idx % kSize.elements));
  } else {
    static_assert(format == QuantFormat::kF8Block128);
    const int64_t scale_row = (weights.first_row + row) / kF8BlockSize;
    const float scale =
        LoadUnaligned<float>(weights.scales, scale_row * weights.scale_stride + col / kF8BlockSize);
    return DecodeE4m3(LoadUnaligned<uint8_t>(weights.data, idx)) * scale;
  }
}

// Elements [first_col, first_col + count) of a row.
template <QuantFormat format>
void DecodeSpan(const WeightRows& weights, int row, int first_col, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = Element<format>(weights, row, first_col + i);
}

}  // namespace hadal::reference
