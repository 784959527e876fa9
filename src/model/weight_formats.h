// Which matrices of a model may be rounded, and to what when nothing else is said.
#pragma once

#include <optional>

#include "model/weight_names.h"
#include "tensor/block_layout.h"

namespace hadal {

// The group size of a format when nothing else is said.
constexpr int DefaultGroupSize(QuantFormat format) {
  return format == QuantFormat::kInt4Group ? 128 : 64;
}

// Whether a weight of this role and width can be stored in groups. Never: the embedding (a
// look-up), kv_b (attention multiplies with both of its sides), routers and the indexer's head
// weights (small, and they decide), vectors, and matrices whose width is no multiple of 32.
bool CanBeGrouped(WeightRole role, int64_t cols);

// The format of a matrix when the model's are to be `shape`: empty where it stays as it is. With
// kInt4Group
//   - the head has eight bits, in groups of 32: every token meets it;
//   - dense layers have eight bits, in groups of 128: they come first, few as they are, and what
//     they spoil moves the choices of all routers behind them;
//   - attention has groups of 32.
// docs/quantisation.md has the measurements.
std::optional<GroupShape> DefaultFormat(WeightRole role, int64_t cols, const GroupShape& shape);

}  // namespace hadal
