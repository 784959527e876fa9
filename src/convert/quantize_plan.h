// What a quantised checkpoint will hold, tensor by tensor.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "convert/recipe.h"
#include "formats/checkpoint.h"
#include "formats/safetensors_layout.h"
#include "model/model_config.h"
#include "model/weight_names.h"

namespace hadal {

struct QuantizeItem {
  WeightRole role = WeightRole::kEmbedding;
  WeightPart part = WeightPart::kEmbedding;
  int layer_idx = -1, expert_idx = -1;
  std::string name;
  int rows = 0, cols = 0;  // cols 0: a vector
  const TensorInfo* source = nullptr;
  const TensorInfo* source_scales = nullptr;  // of an FP8 matrix
  WeightTarget target;
  int spec_idx = 0;
  int scales_spec_idx = -1;  // of FP8

  int64_t num_elements() const { return int64_t{rows} * (cols > 0 ? cols : 1); }
};

struct QuantizePlan {
  std::vector<QuantizeItem> items;  // by layer: the model's own, the layers, MTP's
  std::vector<SafetensorsSpec> specs;
  int num_left_out = 0;  // tensors of the source that the model has no role for, and MTP's copies

  int64_t num_elements() const;
  // Stored bits for each weight of the matrices that quantisation is about: all but embedding,
  // heads, routers and vectors, scales and zero points included.
  double bits_per_weight() const;
};

// Copies of embedding and head that an MTP layer brings are left out where they are the same bytes
// as the main ones. kCorrupt, kUnsupported: the weights, as FindWeights.
Result<QuantizePlan> PlanQuantization(const Checkpoint& checkpoint, const ModelConfig& config,
                                      const Recipe& recipe);

}  // namespace hadal
