#include "cache/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace hadal {
namespace {

Hash128 ExtendText(Hash128 state, std::string_view text) {
  state = Extend(state, text.size());  // so that "a" + "bc" differs from "ab" + "c"
  for (const char c : text) state = Extend(state, static_cast<unsigned char>(c));
  return state;
}

}  // namespace

Hash128 PrefixSalt(std::string_view salt, std::string_view adapter) {
  return ExtendText(ExtendText({}, salt), adapter);
}

Hash128 HashBlock(const Hash128& parent, std::span<const TokenId> tokens) {
  Hash128 key = parent;
  for (const TokenId token : tokens) key = Extend(key, static_cast<uint64_t>(token.value));
  return key;
}

PrefixIndex::PrefixIndex(int num_blocks, int block_tokens, BlockHash hash)
    : hash_(hash),
      block_tokens_(block_tokens),
      entries_(num_blocks),
      tokens_(static_cast<size_t>(num_blocks) * block_tokens),
      buckets_(std::bit_ceil(static_cast<size_t>(std::max(num_blocks, 1)) * 2), -1) {
  HADAL_CHECK(block_tokens > 0);
}

std::optional<PrefixNode> PrefixIndex::Find(const PrefixNode& parent,
                                            std::span<const TokenId> tokens) const {
  HADAL_DCHECK(static_cast<int>(tokens.size()) == block_tokens_);
  const Hash128 key = hash_(parent.key, tokens);
  for (int32_t block = buckets_[bucket_of(key)]; block >= 0; block = entries_[block].next) {
    const Entry& entry = entries_[block];
    if (entry.key == key && IsChild(entry, parent) && std::ranges::equal(tokens, tokens_of(block)))
      return PrefixNode{key, entry.id, BlockId{block}};
  }
  return std::nullopt;
}

PrefixNode PrefixIndex::Insert(const PrefixNode& parent, std::span<const TokenId> tokens,
                               BlockId block) {
  HADAL_DCHECK(!Contains(block) && IsAlive(parent) && !Find(parent, tokens));
  const Hash128 key = hash_(parent.key, tokens);
  int32_t* bucket = &buckets_[bucket_of(key)];
  entries_[block.value] = {.id = next_id_++,
                           .parent = parent.entry,
                           .root_salt = parent.entry < 0 ? parent.key : Hash128{},
                           .key = key,
                           .next = *bucket};
  *bucket = block.value;
  std::ranges::copy(tokens, tokens_.begin() + static_cast<int64_t>(block.value) * block_tokens_);
  ++num_entries_;
  return {key, entries_[block.value].id, block};
}

void PrefixIndex::Erase(BlockId block) {
  if (!Contains(block)) return;
  int32_t* link = &buckets_[bucket_of(entries_[block.value].key)];
  while (*link != block.value) link = &entries_[*link].next;
  *link = entries_[block.value].next;
  entries_[block.value] = {};
  --num_entries_;
}

void PrefixIndex::CheckInvariants() const {
  int listed = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (int32_t block = buckets_[i]; block >= 0; block = entries_[block].next) {
      HADAL_CHECK(entries_[block].id >= 0 && bucket_of(entries_[block].key) == i);
      for (int32_t other = entries_[block].next; other >= 0; other = entries_[other].next) {
        HADAL_CHECK(entries_[block].parent != entries_[other].parent ||
                    entries_[block].root_salt != entries_[other].root_salt ||
                    !std::ranges::equal(tokens_of(block), tokens_of(other)));
      }
      HADAL_CHECK(++listed <= num_entries_);
    }
  }
  HADAL_CHECK(listed == num_entries_);
}

}  // namespace hadal
