// Blocks of GGUF's types in tiles of hadal's own grouped formats, where these hold every value.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "tensor/block_layout.h"
#include "tensor/scalar.h"

namespace hadal {

// The grouped format that can hold blocks of this type exactly: four bits for Q4_0, eight for Q5_0,
// Q8_0 and IQ4_NL, groups of 32. Nothing for the others, whose scales are products, or which have
// minima, or more than 32 elements to a scale that is no binary16 number.
std::optional<GroupShape> ExactTilesOfBlocks(DType dtype);

// Rewrites rows of whole blocks. False when a value has no counterpart: the code -128 of Q8_0, or a
// scale that is not finite. REQUIRES: ExactTilesOfBlocks(dtype); bytes of [rows, cols]; tiles of
// GroupedBytes, zeroed.
bool BlocksToTiles(DType dtype, std::span<const std::byte> bytes, int rows, int cols,
                   std::span<std::byte> tiles);

}  // namespace hadal
