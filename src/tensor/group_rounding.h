// Choosing scale, zero point and codes of a group of weights so that the error is small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/block_layout.h"
#include "tensor/quantized_matrix.h"

namespace hadal {

// How much work a choice is worth.
enum class ScaleChoice {
  kRange,   // the scale that covers the largest value: round-to-nearest
  kQuick,   // the best of a few, for conversion at load
  kSearch,  // the best of many
};

// What a group shares, as stored.
struct GroupScale {
  uint16_t scale_bits = 0;  // binary16; may be negative: codes reach further to one side
  int zero_point = 8;       // of kInt8Group unused
};

// Chooses the scale of `values` for codes of `shape.format` by the sum of importance * (value -
// rounded)^2; an empty `importance` counts as all ones, and must not be negative otherwise. Values
// that are not finite count as 0.
GroupScale ChooseScale(const GroupShape& shape, std::span<const float> values,
                       std::span<const float> importance, ScaleChoice choice);

// The nearest codes under a scale; ties to even.
void RoundToCodes(const GroupShape& shape, const GroupScale& scale, std::span<const float> values,
                  std::span<int8_t> codes);

// The number that a code stands for is (code - offset) * step, rounded to float once.
struct CodeGrid {
  float step = 0.0f;
  int offset = 0, lowest = 0, highest = 0;  // codes lowest .. highest
};
CodeGrid GridOf(const GroupShape& shape, const GroupScale& scale);

// Rounds rows [first_row, first_row + num_rows) of a matrix, given as floats [num_rows, cols], into
// their places. REQUIRES: `tiles` is the whole matrix.
void RoundRows(const GroupShape& shape, int cols, int first_row, int num_rows, const float* values,
               ScaleChoice choice, std::span<std::byte> tiles);

}  // namespace hadal
