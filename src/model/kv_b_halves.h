// kv_b of files that store its halves apart. Specification, 8.3.
#pragma once

#include <vector>

#include "formats/tensor_info.h"
#include "model/model_config.h"

namespace hadal {

// [heads * (qk_nope_head_dim + v_head_dim), kv_lora_rank] of
//   key [heads, kv_lora_rank, qk_nope_head_dim], which is transposed head by head, and
//   value [heads, v_head_dim, kv_lora_rank].
// REQUIRES: both are of GGUF's types and have these sizes.
std::vector<float> JoinKvBHalves(const ModelConfig& config, const TensorInfo& key,
                                 const TensorInfo& value);

}  // namespace hadal
