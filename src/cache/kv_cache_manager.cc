#include "cache/kv_cache_manager.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace hadal {

KvCacheManager::KvCacheManager(const CacheGeometry& geometry, BlockHash hash)
    : geometry_(geometry),
      pool_(geometry.num_blocks),
      index_(geometry.num_blocks, geometry.block_tokens, hash) {
  HADAL_CHECK(geometry.restart_granularity() % geometry.block_tokens == 0);
}

std::span<const TokenId> KvCacheManager::TokensOf(std::span<const TokenId> tokens,
                                                  int block_idx) const {
  return tokens.subspan(static_cast<size_t>(block_idx) * geometry_.block_tokens,
                        geometry_.block_tokens);
}

template <class Visit>
int KvCacheManager::Follow(std::span<const TokenId> tokens, const Hash128& salt,
                           Visit visit) const {
  const int max_blocks =
      tokens.empty() ? 0 : static_cast<int>(tokens.size() - 1) / geometry_.block_tokens;
  const int blocks_per_restart = geometry_.restart_granularity() / geometry_.block_tokens;
  PrefixNode node = PrefixIndex::Root(salt);
  int num_found = 0;
  while (num_found < max_blocks) {
    const std::optional<PrefixNode> next = index_.Find(node, TokensOf(tokens, num_found));
    if (!next) break;
    node = *next;
    visit(node);
    ++num_found;
  }
  return num_found / blocks_per_restart * blocks_per_restart;
}

int KvCacheManager::CountShared(std::span<const TokenId> tokens, const Hash128& salt) const {
  return Follow(tokens, salt, [](const PrefixNode&) {}) * geometry_.block_tokens;
}

int KvCacheManager::Adopt(std::span<const TokenId> tokens, BlockTable* table) {
  HADAL_CHECK(table->blocks.empty());
  const int num_shared = Follow(tokens, table->salt, [table](const PrefixNode& node) {
    table->blocks.push_back(node.block);
  });
  table->blocks.resize(static_cast<size_t>(num_shared));
  for (const BlockId block : table->blocks) pool_.Ref(block);
  table->num_published = num_shared;
  table->published_end = PrefixIndex::Root(table->salt);
  if (num_shared > 0) table->published_end = index_.NodeOf(table->blocks.back());
  return num_shared * geometry_.block_tokens;
}

bool KvCacheManager::Reserve(int num_tokens, BlockTable* table) {
  const int missing = num_blocks_for(num_tokens) - static_cast<int>(table->blocks.size());
  if (missing > pool_.num_free()) return false;
  for (int i = 0; i < missing; ++i) {
    const BlockId block = pool_.Take();
    index_.Erase(block);
    table->blocks.push_back(block);
  }
  return true;
}

void KvCacheManager::Publish(std::span<const TokenId> tokens, int num_final, BlockTable* table) {
  const int num_full = num_final / geometry_.block_tokens;
  HADAL_CHECK(num_full <= static_cast<int>(table->blocks.size()));
  if (num_full <= table->num_published) return;
  PrefixNode node =
      table->num_published > 0 ? table->published_end : PrefixIndex::Root(table->salt);
  // When two sequences computed the same prefix at the same time only the first one's block has the
  // entry. If that one was evicted meanwhile, this table's own blocks take its place.
  if (!index_.IsAlive(node)) {
    node = PrefixIndex::Root(table->salt);
    table->num_published = 0;
  }
  for (int i = table->num_published; i < num_full; ++i) {
    const std::span<const TokenId> block_tokens = TokensOf(tokens, i);
    if (const std::optional<PrefixNode> known = index_.Find(node, block_tokens)) {
      node = *known;
      continue;
    }
    index_.Erase(table->blocks[i]);  // an entry below a parent that is gone
    node = index_.Insert(node, block_tokens, table->blocks[i]);
  }
  table->num_published = num_full;
  table->published_end = node;
}

void KvCacheManager::Drop(BlockId block) {
  if (index_.Contains(block)) {
    pool_.Unref(block);
  } else {
    pool_.Discard(block);
  }
}

void KvCacheManager::Truncate(int num_tokens, BlockTable* table) {
  const size_t num_kept = static_cast<size_t>(num_blocks_for(num_tokens));
  HADAL_CHECK(static_cast<int>(num_kept) >= table->num_published);
  while (table->blocks.size() > num_kept) {
    Drop(table->blocks.back());
    table->blocks.pop_back();
  }
}

void KvCacheManager::Release(BlockTable* table) {
  while (!table->blocks.empty()) {
    Drop(table->blocks.back());
    table->blocks.pop_back();
  }
  table->num_published = 0;
  table->published_end = {};
}

void KvCacheManager::CheckInvariants(std::span<const BlockTable* const> tables) const {
  pool_.CheckInvariants();
  index_.CheckInvariants();
  std::vector<int> counts(geometry_.num_blocks);
  for (const BlockTable* table : tables) {
    HADAL_CHECK(table->num_published <= static_cast<int>(table->blocks.size()));
    for (const BlockId block : table->blocks) ++counts[block.value];
  }
  for (int i = 0; i < geometry_.num_blocks; ++i)
    HADAL_CHECK(counts[i] == pool_.ref_count(BlockId{i}));
}

}  // namespace hadal
