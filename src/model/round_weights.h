// Rounds the weights of a model that was opened with wide ones, in memory.
#pragma once

#include "backend/backend.h"
#include "base/status.h"
#include "model/model_config.h"
#include "model/weight_store.h"
#include "tensor/block_layout.h"

namespace hadal {

// Replaces the matrices that DefaultFormat names by rounded ones, which `weights` owns then; each
// group gets a scale with a small squared error. kResourceExhausted when memory is short;
// kInvalidArgument when the model is rounded already.
Status RoundWeights(const ModelConfig& config, const GroupShape& shape, Backend* backend,
                    ModelWeights* weights);

}  // namespace hadal
