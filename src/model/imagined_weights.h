// The weights of a model that is not there: shapes and formats without bytes, enough to count what
// a step would read and compute.
#pragma once

#include "model/model_config.h"
#include "model/weight_names.h"
#include "model/weight_store.h"

namespace hadal {

// Whether the releases that use FP8 store the matrix of this role in it. Specification, 2.1 to 2.7.
bool IsPublishedInFp8(WeightRole role);

// As a checkpoint in `format` has them: kBF16 and kF8Block128 as published, grouped formats with
// DefaultFormat's choices for each role, and kv_b in FP8 beside four bits. Without MTP's layer.
// Their bytes must not be read. REQUIRES: not kF32 or kF16.
ModelWeights ImagineWeights(const ModelConfig& config, QuantFormat format);

}  // namespace hadal
