// Finds the tensors of a checkpoint that a config asks for and collects everything that is wrong
// with them, so that a broken checkpoint is described in one message.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "formats/packed_weight.h"
#include "model/model_config.h"
#include "model/weight_names.h"
#include "tensor/block_layout.h"

namespace hadal {

// A tensor with the shape of its role, in a type that we read.
struct FoundWeight {
  std::string name = {};  // in the published layout
  WeightRole role = WeightRole::kEmbedding;
  int layer_idx = -1, expert_idx = -1;
  const TensorInfo* tensor = nullptr;
  QuantFormat format = QuantFormat::kF32;  // of a matrix
  GroupShape group_shape = {};             // of a grouped one
  int rows = 0, cols = 0;                  // of a matrix
  const TensorInfo* scales = nullptr;      // of a kF8Block128 matrix
  // kv_b of files that hold its halves apart (formats/gguf_tensors.h); then `tensor` is null and
  // the format kF32.
  const TensorInfo* split_key = nullptr;
  const TensorInfo* split_value = nullptr;
  // A matrix of an export, in another form than kernels read; then `tensor` is null.
  std::shared_ptr<const PackedWeight> packed = nullptr;
};

struct FoundWeights {
  std::vector<FoundWeight> weights;  // MTP's after the main model's
  bool has_mtp = false;
};

// As BindWeights. Costs memory in proportion to the checkpoint, not to what the config claims.
Result<FoundWeights> FindWeights(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace hadal
