#include "model/latent_cache.h"

#include "model/cache_size.h"

namespace hadal {

Result<LatentCache> LatentCache::Create(const ModelConfig& config, int num_layers, int num_blocks,
                                        CacheType type, Backend* backend) {
  LatentCache cache;
  const int64_t slots = static_cast<int64_t>(num_blocks) * kBlockTokens;
  ASSIGN_OR_RETURN(cache.buffer_,
                   backend->Allocate(slots * CacheBytesPerToken(config, num_layers, type)));
  cache.num_blocks_ = num_blocks;
  std::byte* data = cache.buffer_.data();
  const auto take = [&](CacheType part_type, int cols) {
    const CacheRows part = {data, part_type, static_cast<int>(slots), cols};
    data += slots * part.row_bytes();
    return part;
  };
  for (int layer = 0; layer < num_layers; ++layer) {
    cache.latents_.push_back(take(type, config.latent_dim()));
    if (config.has_indexer())
      cache.index_keys_.push_back(take(CacheType::kF32, config.index_head_dim));
  }
  return cache;
}

}  // namespace hadal
