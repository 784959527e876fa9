// The paged bytes of the cache: per layer one row per slot, [normalised latent ; rotated rope key]
// and, with an indexer, its key. Which sequence holds which block is not known here.
// Specification, 3.8 and 6.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "base/types.h"
#include "model/model_config.h"
#include "tensor/buffer.h"
#include "tensor/matrix.h"

namespace hadal {

// Positions of a block: large enough that a block's rows are read as a stream, small enough that
// little is wasted at the end of a sequence.
inline constexpr int kBlockTokens = 64;

class LatentCache {
 public:
  // num_layers: num_hidden_layers, or num_stored_layers when the MTP module runs too.
  // kResourceExhausted when memory is short.
  static Result<LatentCache> Create(const ModelConfig& config, int num_layers, int num_blocks,
                                    CacheType type, Backend* backend);

  int num_blocks() const { return num_blocks_; }
  CacheRows latents(int layer_idx) const { return latents_[static_cast<size_t>(layer_idx)]; }
  // Always kF32. REQUIRES: the model has an indexer.
  CacheRows index_keys(int layer_idx) const { return index_keys_[static_cast<size_t>(layer_idx)]; }

  // The rows of one block in all layers, layer by layer. REQUIRES: bytes.size() == block_bytes().
  int64_t block_bytes() const;
  void CopyBlockOut(BlockId block, std::span<std::byte> bytes) const;
  void CopyBlockIn(std::span<const std::byte> bytes, BlockId block);

 private:
  // Calls visit(rows of the block, their size in bytes) for each matrix, in a fixed order.
  template <class Visit>
  void ForEachPart(BlockId block, Visit visit) const;

  Buffer buffer_;
  int num_blocks_ = 0;
  std::vector<CacheRows> latents_, index_keys_;
};

}  // namespace hadal
