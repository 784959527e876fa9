#include "model/latent_cache.h"

#include "model/cache_size.h"

namespace hadal {

Result<LatentCache> LatentCache::Create(const ModelConfig& config, int num_layers, int num_blocks,
                                        Backend* backend) {
  LatentCache cache;
  const int64_t slots = static_cast<int64_t>(num_blocks) * kBlockTokens;
  ASSIGN_OR_RETURN(cache.buffer_,
                   backend->Allocate(slots * CacheBytesPerToken(config, num_layers)));
  cache.num_blocks_ = num_blocks;
  auto* data = reinterpret_cast<float*>(cache.buffer_.data());
  const auto take = [&](int cols) {
    const FloatMatrix part = {data, static_cast<int>(slots), cols, cols};
    data += slots * cols;
    return part;
  };
  for (int layer = 0; layer < num_layers; ++layer) {
    cache.latents_.push_back(take(config.latent_dim()));
    if (config.has_indexer()) cache.index_keys_.push_back(take(config.index_head_dim));
  }
  return cache;
}

}  // namespace hadal
