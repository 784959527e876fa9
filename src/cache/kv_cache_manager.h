// Which sequence holds which blocks, and which of them others may share. Engine thread only.
// A block is shared only when it is full and its content is final; what was computed differently
// (in another form of attention) must not be published under the same tokens: the caller decides
// how far a sequence is published.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/types.h"
#include "cache/block_pool.h"
#include "cache/cache_geometry.h"
#include "cache/prefix_index.h"

namespace hadal {

// The blocks of one sequence. Grows, or is cut at the end; ids never change in between.
struct BlockTable {
  std::vector<BlockId>
      blocks;                // block i holds positions [i * block_tokens, (i + 1) * block_tokens)
  int num_published = 0;     // leading blocks that were adopted or offered to others
  Hash128 salt;              // only tables of equal salt share blocks
  PrefixNode published_end;  // node of the last published block; set when num_published > 0
};

// Invariant: a block's reference count is the number of tables that hold it.
class KvCacheManager {
 public:
  explicit KvCacheManager(const CacheGeometry& geometry, BlockHash hash = &HashBlock);

  const CacheGeometry& geometry() const { return geometry_; }
  int num_free_blocks() const { return pool_.num_free(); }
  int num_blocks_for(int num_tokens) const { return CeilDiv(num_tokens, geometry_.block_tokens); }

  // Shares the longest published prefix of `tokens` and returns its length: whole blocks, and never
  // the last token, because its logits are still needed. REQUIRES: the table is empty.
  int Adopt(std::span<const TokenId> tokens, BlockTable* table);

  // How many tokens Adopt() would share now.
  int CountShared(std::span<const TokenId> tokens, const Hash128& salt) const;

  // Grows `table` to cover positions [0, num_tokens). False, with nothing changed, when blocks are
  // short. Never shrinks.
  [[nodiscard]] bool Reserve(int num_tokens, BlockTable* table);

  // Offers the full blocks of positions [0, num_final) to others. Drafts are not final.
  // REQUIRES: tokens.size() >= num_final and the table covers num_final.
  void Publish(std::span<const TokenId> tokens, int num_final, BlockTable* table);

  // Gives back the blocks behind position num_tokens, after rejected drafts.
  // REQUIRES: nothing published lies there.
  void Truncate(int num_tokens, BlockTable* table);

  // Gives back everything, last block first, so that prefixes outlive tails. The salt stays.
  void Release(BlockTable* table);

  // Counts references of `tables` (all that exist) against the pool. For tests.
  void CheckInvariants(std::span<const BlockTable* const> tables) const;

 private:
  void Drop(BlockId block);
  // Walks along the published prefix: visit(node) for each block of it. Returns how many of them
  // may be shared.
  template <class Visit>
  int Follow(std::span<const TokenId> tokens, const Hash128& salt, Visit visit) const;
  std::span<const TokenId> TokensOf(std::span<const TokenId> tokens, int block_idx) const;

  CacheGeometry geometry_;
  BlockPool pool_;
  PrefixIndex index_;
};

}  // namespace hadal
