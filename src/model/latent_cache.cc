#include "model/latent_cache.h"

namespace hadal {

int64_t LatentCache::BytesPerToken(const ModelConfig& config) {
  const int64_t floats = config.latent_dim() + (config.has_indexer() ? config.index_head_dim : 0);
  return floats * config.num_stored_layers() * static_cast<int64_t>(sizeof(float));
}

Result<LatentCache> LatentCache::Create(const ModelConfig& config, int num_blocks,
                                        Backend* backend) {
  LatentCache cache;
  const int64_t slots = static_cast<int64_t>(num_blocks) * kBlockTokens;
  ASSIGN_OR_RETURN(cache.buffer_, backend->Allocate(slots * BytesPerToken(config)));
  cache.num_blocks_ = num_blocks;
  auto* data = reinterpret_cast<float*>(cache.buffer_.data());
  const auto take = [&](int cols) {
    const FloatMatrix part = {data, static_cast<int>(slots), cols, cols};
    data += slots * cols;
    return part;
  };
  for (int layer = 0; layer < config.num_stored_layers(); ++layer) {
    cache.latents_.push_back(take(config.latent_dim()));
    if (config.has_indexer()) cache.index_keys_.push_back(take(config.index_head_dim));
  }
  return cache;
}

}  // namespace hadal
