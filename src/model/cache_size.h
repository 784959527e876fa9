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

// Of `num_layers` layers in float32: num_hidden_layers, and one more where the MTP module runs.
inline int64_t CacheBytesPerToken(const ModelConfig& config, int num_layers) {
  return CachedValuesPerLayer(config) * num_layers * static_cast<int64_t>(sizeof(float));
}

}  // namespace hadal
