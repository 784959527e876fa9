#include "cache/block_pool.h"

#include "base/check.h"

namespace hadal {

BlockPool::BlockPool(int num_blocks) {
  HADAL_CHECK(num_blocks >= 0);
  records_.resize(static_cast<size_t>(num_blocks) + 1);
  records_[num_blocks].previous = records_[num_blocks].next = num_blocks;
  for (int i = 0; i < num_blocks; ++i) InsertBefore(ring(), BlockId{i});
}

const BlockPool::Record& BlockPool::record(BlockId block) const {
  HADAL_DCHECK(block.value >= 0 && block.value < num_blocks());
  return records_[block.value];
}

BlockPool::Record& BlockPool::record(BlockId block) {
  HADAL_DCHECK(block.value >= 0 && block.value < num_blocks());
  return records_[block.value];
}

void BlockPool::InsertBefore(int32_t next, BlockId block) {
  const int32_t previous = records_[next].previous;
  records_[block.value].previous = previous;
  records_[block.value].next = next;
  records_[previous].next = block.value;
  records_[next].previous = block.value;
  ++num_free_;
}

void BlockPool::Remove(BlockId block) {
  const Record& gone = record(block);
  records_[gone.previous].next = gone.next;
  records_[gone.next].previous = gone.previous;
  --num_free_;
}

BlockId BlockPool::Take() {
  HADAL_CHECK(num_free_ > 0);
  const BlockId block{records_[ring()].next};
  Remove(block);
  record(block).ref_count = 1;
  return block;
}

void BlockPool::Ref(BlockId block) {
  if (record(block).ref_count++ == 0) Remove(block);
}

void BlockPool::Unref(BlockId block) {
  HADAL_CHECK(record(block).ref_count > 0);
  if (--record(block).ref_count == 0) InsertBefore(ring(), block);
}

void BlockPool::Discard(BlockId block) {
  HADAL_CHECK(record(block).ref_count > 0);
  if (--record(block).ref_count == 0) InsertBefore(records_[ring()].next, block);
}

void BlockPool::CheckInvariants() const {
  int listed = 0;
  for (int32_t i = records_[ring()].next; i != ring(); i = records_[i].next) {
    HADAL_CHECK(records_[i].ref_count == 0);
    HADAL_CHECK(records_[records_[i].next].previous == i);
    HADAL_CHECK(++listed <= num_blocks());
  }
  int unused = 0;
  for (int i = 0; i < num_blocks(); ++i) unused += records_[i].ref_count == 0 ? 1 : 0;
  HADAL_CHECK(listed == unused && listed == num_free_);
}

}  // namespace hadal
