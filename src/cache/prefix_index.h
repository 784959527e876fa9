// Finds the block that holds given tokens after a given prefix. Engine thread only.
// A key is a hash of the whole prefix, but no hit rests on it: the tokens of the block and the
// entry of its parent are compared, so prompts whose keys collide never share a block.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/types.h"

namespace hadal {

// Keeps prefixes apart that must not be shared although their tokens are equal: those of other
// tenants (`salt`) or computed with other weights (`adapter`). Both empty give the default.
Hash128 PrefixSalt(std::string_view salt, std::string_view adapter);

// The key of a block from the key of its parent and its tokens.
using BlockHash = Hash128 (*)(const Hash128& parent, std::span<const TokenId> tokens);
Hash128 HashBlock(const Hash128& parent, std::span<const TokenId> tokens);

// A place in the tree of prefixes: the root of a salt, or an entry.
struct PrefixNode {
  Hash128 key;         // of the whole prefix; the salt at a root
  int64_t entry = -1;  // unique for all time; -1 at a root
  BlockId block;       // -1 at a root
};

// Invariants: (1) a block has at most one entry; (2) an entry is in the bucket of its key;
// (3) no two entries have the same parent and the same tokens.
class PrefixIndex {
 public:
  PrefixIndex(int num_blocks, int block_tokens, BlockHash hash = &HashBlock);

  static PrefixNode Root(const Hash128& salt) { return {salt, -1, {}}; }

  int num_entries() const { return num_entries_; }
  bool Contains(BlockId block) const { return entries_[block.value].id >= 0; }
  // False once the entry of `node` was erased. Roots live for ever.
  bool IsAlive(const PrefixNode& node) const {
    return node.entry < 0 || entries_[node.block.value].id == node.entry;
  }

  // The entry of a block. REQUIRES: Contains(block).
  PrefixNode NodeOf(BlockId block) const {
    return {entries_[block.value].key, entries_[block.value].id, block};
  }

  // The block that holds `tokens` after `parent`. REQUIRES: tokens.size() == block_tokens.
  std::optional<PrefixNode> Find(const PrefixNode& parent, std::span<const TokenId> tokens) const;

  // Adds an entry for `block`. REQUIRES: Find(parent, tokens) finds nothing, the block has no
  // entry, the parent is alive.
  PrefixNode Insert(const PrefixNode& parent, std::span<const TokenId> tokens, BlockId block);

  // Forgets the block's entry if it has one. Entries below it can no longer be found; they go when
  // their own blocks are taken.
  void Erase(BlockId block);

  void CheckInvariants() const;  // for tests

 private:
  struct Entry {
    int64_t id = -1;  // -1: none
    int64_t parent = -1;
    Hash128 root_salt;  // compared when the parent is a root
    Hash128 key;
    int32_t next = -1;  // in the bucket
  };

  size_t bucket_of(const Hash128& key) const {
    return Hash128Hasher()(key) & (buckets_.size() - 1);
  }
  std::span<const TokenId> tokens_of(int32_t block) const {
    return {tokens_.data() + static_cast<int64_t>(block) * block_tokens_,
            static_cast<size_t>(block_tokens_)};
  }
  bool IsChild(const Entry& entry, const PrefixNode& parent) const {
    return entry.parent == parent.entry && (parent.entry >= 0 || entry.root_salt == parent.key);
  }

  BlockHash hash_;
  int block_tokens_;
  int num_entries_ = 0;
  int64_t next_id_ = 0;
  std::vector<Entry> entries_;    // by block
  std::vector<TokenId> tokens_;   // [num_blocks, block_tokens]
  std::vector<int32_t> buckets_;  // first block of each, -1: empty; a power of two of them
};

}  // namespace hadal
