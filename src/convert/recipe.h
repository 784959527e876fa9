// Which format each matrix of a quantised checkpoint is stored in.
#pragma once

#include <optional>

#include "model/weight_names.h"
#include "tensor/block_layout.h"

namespace hadal {

// Groups for the heads of the recipes below: fine, because every token meets the head.
inline constexpr int kHeadGroupSize = 32;

// The format of a weight when the model's matrices are to be `shape`: empty where it stays as it
// is. Wide stay the embedding (a look-up), kv_b (attention multiplies with both of its sides),
// routers and the indexer's head weights (small, and they decide), vectors, and matrices whose
// width is no multiple of 32. The head has at least eight bits.
std::optional<GroupShape> DefaultFormat(const ExpectedWeight& weight, const GroupShape& shape);

}  // namespace hadal
