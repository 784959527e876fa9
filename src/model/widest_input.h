// Input features of the widest matrix of a model: what scratch for rounded inputs is sized by.
#pragma once

#include <algorithm>

#include "model/model_config.h"

namespace hadal {

inline int WidestInput(const ModelConfig& config) {
  return std::max({2 * config.hidden_size, config.intermediate_size,
                   config.n_shared_experts * config.moe_intermediate_size,
                   config.num_attention_heads * config.v_head_dim, config.q_lora_rank,
                   config.kv_lora_rank});
}

}  // namespace hadal
