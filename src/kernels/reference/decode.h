// Stored weights to float, one element at a time: exact and clear.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/kernel_table.h"

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

// IEEE binary16. A signalling NaN becomes quiet, as the processor's own conversion does.
inline float DecodeF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F, mantissa = bits & 0x3FF;
  if (exponent == 0x1F) {
    return std::bit_cast<float>(sign | (mantissa != 0 ? 0x7FC00000u : 0x7F800000u) |
                                (mantissa << 13));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
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
