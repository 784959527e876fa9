// What attention costs in either form, from the config alone. Specification, 3.7; a multiply-add
// counts as two operations, all numbers are per layer.
#pragma once

#include <cstdint>

#include "model/model_config.h"

namespace hadal {

struct AttentionCost {
  // Scores and weighted values of one query against one key, over all heads.
  int64_t expanded_flops_per_pair = 0;  // keys and values unfolded per head
  int64_t absorbed_flops_per_pair = 0;  // keys and values are the latents
  // Unfolding one cached token (expanded), or folding one query and its result (absorbed).
  int64_t fold_flops_per_token = 0;

  // New tokens over a long cache from which on unfolding the cache costs less than working on
  // latents: T (absorbed - expanded) = fold. Infinite when latents are never dearer.
  double break_even_tokens() const;
};

AttentionCost CountAttentionCost(const ModelConfig& config);

}  // namespace hadal
