// Four-bit and eight-bit codes in 32-bit words, as the third-party exports of safetensors pack
// them. Specification, 7.6.
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

}  // namespace hadal
