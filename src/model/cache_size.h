// What one token costs in the latent cache.
#pragma once

#include <cstdint>

#include "model/model_config.h"
#include "tensor/block_layout.h"

namespace hadal {

// Numbers that one layer keeps of a token: the latent, the rotated key, and the indexer's key.
// Specification, 3.8 and 6.2.
inline int64_t CachedValuesPerLayer(const ModelConfig& config) {
  return config.latent_dim() + (config.has_indexer() ? config.index_head_dim : 0);
}

// Of `num_layers` layers: num_hidden_layers, and one more where the MTP module runs. The indexer's
// keys stay float32, since a choice between positions hangs on their last bits.
inline int64_t CacheBytesPerToken(const ModelConfig& config, int num_layers,
                                  CacheType type = CacheType::kF32) {
  const int64_t index_bytes =
      config.has_indexer() ? CacheRowBytes(CacheType::kF32, config.index_head_dim) : 0;
  return num_layers * (CacheRowBytes(type, config.latent_dim()) + index_bytes);
}

}  // namespace hadal
