#include "model/attention_cost.h"

#include <limits>

namespace hadal {

AttentionCost CountAttentionCost(const ModelConfig& config) {
  const int64_t two_heads = 2 * int64_t{config.num_attention_heads};
  return {.expanded_flops_per_pair = two_heads * (config.qk_head_dim() + config.v_head_dim),
          .absorbed_flops_per_pair = two_heads * (config.latent_dim() + config.kv_lora_rank),
          .fold_flops_per_token =
              two_heads * config.kv_lora_rank * (config.qk_nope_head_dim + config.v_head_dim)};
}

double AttentionCost::break_even_tokens() const {
  const int64_t dearer = absorbed_flops_per_pair - expanded_flops_per_pair;
  if (dearer <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(fold_flops_per_token) / static_cast<double>(dearer);
}

}  // namespace hadal
