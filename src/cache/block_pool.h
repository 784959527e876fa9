// Pages of the cache: who holds them, and in which order they may be taken. Knows nothing of tokens
// or of what the pages contain. Engine thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace hadal {

// Invariants: (1) a block is in the free list if and only if its count is zero;
// (2) the free list starts with blocks whose content is worthless, then goes from the longest
// unused to the last freed.
class BlockPool {
 public:
  // REQUIRES: num_blocks >= 0.
  explicit BlockPool(int num_blocks);

  int num_blocks() const { return static_cast<int>(records_.size()) - 1; }
  // Blocks that Take() can give, those with reusable content included.
  int num_free() const { return num_free_; }
  int ref_count(BlockId block) const { return record(block).ref_count; }

  // Takes the first block of the free list with a count of one; its content is lost.
  // REQUIRES: num_free() > 0.
  BlockId Take();

  // Adds one reference; a free block leaves the free list with its content.
  void Ref(BlockId block);

  // Drops one reference. At zero the block becomes free but keeps its content until it is taken,
  // which happens after all blocks that were freed before it.
  void Unref(BlockId block);

  // Drops one reference to a block whose content nobody can find again: at zero it is the next one
  // to be taken, so that reusable content lasts longer.
  void Discard(BlockId block);

  void CheckInvariants() const;  // for tests

 private:
  struct Record {
    int ref_count = 0;
    int32_t previous = 0, next = 0;  // of the free list, a ring through the last record
  };

  const Record& record(BlockId block) const;
  Record& record(BlockId block);
  // Puts a block into the free list, before the record `next`.
  void InsertBefore(int32_t next, BlockId block);
  void Remove(BlockId block);
  int32_t ring() const { return num_blocks(); }  // index of the record that closes the ring

  std::vector<Record> records_;  // one per block and one that closes the ring
  int num_free_ = 0;
};

}  // namespace hadal
