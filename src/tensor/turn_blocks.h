// Rows of a blocked format turned in eights, as products like them. See block_layout.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_layout.h"

namespace hadal {

// Turns `num_rows` rows of `cols` columns from `from` into `to`, which takes as many bytes.
// REQUIRES: IsBlocked(format), whole blocks, num_rows a multiple of 8; the two do not overlap.
void TurnBlocks(QuantFormat format, const std::byte* from, int num_rows, int cols, std::byte* to);

}  // namespace hadal
