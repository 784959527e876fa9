// Which matrices of a model may be rounded, and to what when nothing else is said.
#pragma once

#include <optional>

#include "model/weight_names.h"
#include "tensor/block_layout.h"

namespace hadal {

// Groups of heads that are rounded because the rest of the model is: fine, because every token
// meets the head.
inline constexpr int kHeadGroupSize = 32;

// Whether a weight of this role and width can be stored in groups. Never: the embedding (a
// look-up), kv_b (attention multiplies with both of its sides), routers and the indexer's head
// weights (small, and they decide), vectors, and matrices whose width is no multiple of 32.
bool CanBeGrouped(WeightRole role, int64_t cols);

// The format of a matrix when the model's are to be `shape`: empty where it stays as it is. The
// head has at least eight bits.
std::optional<GroupShape> DefaultFormat(WeightRole role, int64_t cols, const GroupShape& shape);

}  // namespace hadal
