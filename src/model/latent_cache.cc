#include "model/latent_cache.h"

#include <cstring>

#include "base/check.h"
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

template <class Visit>
void LatentCache::ForEachPart(BlockId block, Visit visit) const {
  HADAL_CHECK(block.value >= 0 && block.value < num_blocks_);
  const auto part = [&](const CacheRows& rows) {
    const int64_t bytes = rows.row_bytes() * kBlockTokens;
    visit(rows.data + block.value * bytes, static_cast<size_t>(bytes));
  };
  for (const CacheRows& rows : latents_) part(rows);
  for (const CacheRows& rows : index_keys_) part(rows);
}

int64_t LatentCache::block_bytes() const {
  int64_t sum = 0;
  ForEachPart(BlockId{0},
              [&](const std::byte*, size_t bytes) { sum += static_cast<int64_t>(bytes); });
  return sum;
}

void LatentCache::CopyBlockOut(BlockId block, std::span<std::byte> bytes) const {
  std::byte* to = bytes.data();
  ForEachPart(block, [&](const std::byte* rows, size_t size) {
    std::memcpy(to, rows, size);
    to += size;
  });
}

void LatentCache::CopyBlockIn(std::span<const std::byte> bytes, BlockId block) {
  const std::byte* from = bytes.data();
  ForEachPart(block, [&](std::byte* rows, size_t size) {
    std::memcpy(rows, from, size);
    from += size;
  });
}

}  // namespace hadal
