// Four-bit codes in words and bytes, as the exports of safetensors pack them. Specification, 7.6.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hadal {

// Code j of a word in the order of compressed-tensors and GPTQ: code j in bits [4j, 4j + 4).
constexpr int SequentialNibble(uint32_t word, int j) {
  return static_cast<int>((word >> (4 * j)) & 15);
}

// Code of output column 8k + column of an AWQ word: nibble j holds column (0, 2, 4, 6, 1, 3, 5,
// 7)[j].
constexpr int AwqNibble(uint32_t word, int column) {
  constexpr std::array kNibbleOfColumn = {0, 4, 1, 5, 2, 6, 3, 7};
  return SequentialNibble(word, kNibbleOfColumn[static_cast<size_t>(column)]);
}

// compressed-tensors stores signed codes, and zero points, shifted by 8.
constexpr int CompressedTensorsCode(uint32_t word, int j) { return SequentialNibble(word, j) - 8; }

// The first version of GPTQ stores the zero point less one.
constexpr int GptqV1ZeroPoint(uint32_t word, int j) { return (SequentialNibble(word, j) + 1) & 15; }

// Two values of FP4 (E2M1: one sign, two exponent and one mantissa bit) lie in a byte, the earlier
// one in the low half. j is 0 or 1.
constexpr float Fp4Value(uint8_t byte, int j) {
  constexpr std::array kMagnitudes = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const int code = (byte >> (4 * j)) & 15;
  const float magnitude = kMagnitudes[static_cast<size_t>(code & 7)];
  return code < 8 ? magnitude : -magnitude;
}

}  // namespace hadal
