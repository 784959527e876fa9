// What one token costs in the latent cache.
#pragma once

#include <cstdint>

#include "model/model_config.h"

namespace hadal {

// Numbers that one layer keeps of a token: the latent, the rotated key, and the indexer's key.
// Specification, 3.8 and 6.2.
inline int64_t CachedValuesPerLayer(const ModelConfig& config) {
  return config.latent_dim() + (config.has_indexer() ? config.index_head_dim : 0);
}

// All layers of the main model, in float32. The MTP layer keeps one more layer when it drafts.
inline int64_t CacheBytesPerToken(const ModelConfig& config) {
  return CachedValuesPerLayer(config) * config.num_hidden_layers *
         static_cast<int64_t>(sizeof(float));
}

}  // namespace hadal
