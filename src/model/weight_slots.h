// Where the matrix of a role stands among the weights of a model.
#pragma once

#include "model/model_config.h"
#include "model/weight_names.h"
#include "model/weight_store.h"

namespace hadal {

// Null for a role that is no matrix of a layer. REQUIRES: expert_idx is -1 or one of the layer's.
QuantizedMatrix* LayerMatrix(WeightRole role, int expert_idx, LayerWeights* layer);

// Null for a role that is a vector. layer_idx in the file's numbering; -1 for the model's own.
// REQUIRES: the layer exists.
QuantizedMatrix* ModelMatrix(const ModelConfig& config, WeightRole role, int layer_idx,
                             int expert_idx, ModelWeights* model);

}  // namespace hadal
