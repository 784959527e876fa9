// Whether products with weights in GGUF's blocks take inputs as they are, or rounded to bytes.
#pragma once

#include "model/weight_store.h"

namespace hadal {

// Marks the blocked matrices of attention, feed-forward layers and heads, so that products round
// their inputs to bytes in groups of 32, as they do for INT8 and INT4
// (QuantizedMatrix::group_size). Embeddings, kv_b, routers and the indexer's head weights stay
// exact; so do gate and up where their formats differ, and experts where those of one layer do.
void RoundBlockInputs(ModelWeights* weights);

}  // namespace hadal
