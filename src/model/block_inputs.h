// Whether products with weights in GGUF's blocks take inputs as they are, or rounded to bytes.
#pragma once

#include "model/weight_store.h"

namespace hadal {

// Marks the blocked matrices of attention, feed-forward layers and heads, so that kernels may round
// their inputs to bytes in groups of 32, as they do for INT8 and INT4 (WeightRows in
// kernels/kernel_table.h). Embeddings, kv_b, routers and the indexer's head weights stay exact.
void RoundBlockInputs(ModelWeights* weights);

}  // namespace hadal
