// IEEE binary16 to float, by its fields.
#pragma once

#include <bit>
#include <cstdint>

namespace hadal::reference {

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

}  // namespace hadal::reference
