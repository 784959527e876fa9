#include "cache/kv_cache_manager.h"

#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

std::vector<TokenId> Tokens(int count, int first = 0) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back({first + i});
  return tokens;
}

// A table with `tokens` written and published.
BlockTable Filled(KvCacheManager* cache, const std::vector<TokenId>& tokens) {
  BlockTable table;
  EXPECT_TRUE(cache->Reserve(static_cast<int>(tokens.size()), &table));
  cache->Publish(tokens, static_cast<int>(tokens.size()), &table);
  return table;
}

TEST(KvCacheManager, NeverSharesTheLastToken) {
  KvCacheManager cache({.num_blocks = 8, .block_tokens = 4});
  const BlockTable first = Filled(&cache, Tokens(8));
  BlockTable second;
  EXPECT_EQ(cache.Adopt(Tokens(8), &second), 4);  // 8 are cached; the last one's logits are needed
}

// C092: a prompt of exactly k blocks, or one token more, sent again.
TEST(KvCacheManager, SharesWholeBlocksOfThePromptSentAgain) {
  for (int num_blocks = 1; num_blocks <= 3; ++num_blocks) {
    KvCacheManager cache({.num_blocks = 8, .block_tokens = 4});
    BlockTable first = Filled(&cache, Tokens(4 * num_blocks + 1));
    cache.Release(&first);
    for (int round = 0; round < 2; ++round) {
      BlockTable exact, one_more;
      EXPECT_EQ(cache.Adopt(Tokens(4 * num_blocks), &exact), 4 * (num_blocks - 1));
      EXPECT_EQ(cache.Adopt(Tokens(4 * num_blocks + 1), &one_more), 4 * num_blocks);
      cache.Release(&exact);
      cache.Release(&one_more);
    }
  }
}

TEST(KvCacheManager, SharesNothingOfEmptyOrShortPrompts) {
  KvCacheManager cache({.num_blocks = 8, .block_tokens = 4});
  const BlockTable first = Filled(&cache, Tokens(8));
  BlockTable table;
  EXPECT_EQ(cache.Adopt({}, &table), 0);
  EXPECT_EQ(cache.Adopt(Tokens(1), &table), 0);
  EXPECT_TRUE(table.blocks.empty());
}

TEST(KvCacheManager, PublishesOnlyFullFinalBlocks) {
  KvCacheManager cache({.num_blocks = 8, .block_tokens = 4});
  BlockTable first;
  ASSERT_TRUE(cache.Reserve(12, &first));
  cache.Publish(Tokens(12), 7, &first);
  BlockTable second;
  EXPECT_EQ(cache.Adopt(Tokens(12), &second), 4);
}

TEST(KvCacheManager, LeavesEverythingAsItWasWhenBlocksAreShort) {
  KvCacheManager cache({.num_blocks = 3, .block_tokens = 4});
  BlockTable table;
  ASSERT_TRUE(cache.Reserve(5, &table));
  EXPECT_FALSE(cache.Reserve(13, &table));
  EXPECT_EQ(table.blocks.size(), 2u);
  EXPECT_EQ(cache.num_free_blocks(), 1);
  EXPECT_TRUE(cache.Reserve(12, &table));
}

TEST(KvCacheManager, KeepsSharedPrefixWhenItsOwnerEnds) {
  KvCacheManager cache({.num_blocks = 4, .block_tokens = 4});
  BlockTable owner = Filled(&cache, Tokens(8));
  BlockTable reader;
  ASSERT_EQ(cache.Adopt(Tokens(9), &reader), 8);
  const std::vector<BlockId> shared = reader.blocks;
  cache.Release(&owner);
  BlockTable other;
  ASSERT_TRUE(cache.Reserve(8, &other));
  EXPECT_EQ(reader.blocks, shared);
  for (const BlockId block : other.blocks) {
    EXPECT_NE(block, shared[0]);
    EXPECT_NE(block, shared[1]);
  }
}

TEST(KvCacheManager, EvictsTailsBeforePrefixes) {
  KvCacheManager cache({.num_blocks = 3, .block_tokens = 4});
  BlockTable owner = Filled(&cache, Tokens(12));
  cache.Release(&owner);
  BlockTable other;
  ASSERT_TRUE(cache.Reserve(4, &other));
  BlockTable reader;
  EXPECT_EQ(cache.Adopt(Tokens(12), &reader), 8);
}

// C096: a prefix was counted as cached although it was evicted before the request started.
TEST(KvCacheManager, DoesNotFindAnEvictedPrefix) {
  KvCacheManager cache({.num_blocks = 2, .block_tokens = 4});
  BlockTable owner = Filled(&cache, Tokens(8));
  cache.Release(&owner);
  BlockTable other;
  ASSERT_TRUE(cache.Reserve(8, &other));
  cache.Release(&other);
  BlockTable reader;
  EXPECT_EQ(cache.Adopt(Tokens(8), &reader), 0);
}

TEST(KvCacheManager, KeepsTablesOfDifferentSaltApart) {
  KvCacheManager cache({.num_blocks = 8, .block_tokens = 4});
  const BlockTable first = Filled(&cache, Tokens(9));
  BlockTable salted;
  salted.salt = PrefixSalt("tenant", "");
  EXPECT_EQ(cache.Adopt(Tokens(9), &salted), 0);
}

TEST(KvCacheManager, TakesBackBlocksOfRejectedDrafts) {
  KvCacheManager cache({.num_blocks = 4, .block_tokens = 4});
  BlockTable table;
  ASSERT_TRUE(cache.Reserve(9, &table));
  cache.Truncate(8, &table);
  EXPECT_EQ(table.blocks.size(), 2u);
  EXPECT_EQ(cache.num_free_blocks(), 2);
  cache.Truncate(8, &table);
  EXPECT_EQ(table.blocks.size(), 2u);
}

TEST(KvCacheManager, EndsAPrefixOnlyWhereTheModelCanRestart) {
  KvCacheManager cache({.num_blocks = 8, .block_tokens = 4, .restart_tokens = 8});
  const BlockTable first = Filled(&cache, Tokens(16));
  BlockTable table;
  EXPECT_EQ(cache.Adopt(Tokens(16), &table), 8);  // 12 are cached and could be shared
  const BlockTable* tables[] = {&first, &table};
  cache.CheckInvariants(tables);
}

// Two sequences computed the same prefix at once; the one whose blocks have the entries ended and
// was evicted. The other one's longer prefix must become findable all the same.
TEST(KvCacheManager, PublishesItsOwnBlocksWhenTheTwinOfItsPrefixIsGone) {
  KvCacheManager cache({.num_blocks = 5, .block_tokens = 4});
  BlockTable twin = Filled(&cache, Tokens(4));
  BlockTable table = Filled(&cache, Tokens(4));
  cache.Release(&twin);
  BlockTable other;
  ASSERT_TRUE(cache.Reserve(16, &other));  // takes the twin's block
  cache.Release(&other);
  ASSERT_TRUE(cache.Reserve(8, &table));
  cache.Publish(Tokens(8), 8, &table);
  BlockTable reader;
  EXPECT_EQ(cache.Adopt(Tokens(9), &reader), 8);
  EXPECT_EQ(reader.blocks, table.blocks);
}

// Random life of many tables. The model writes into each block the prefix that it stands for; a
// shared block must hold just that prefix, and writing must never hit a block that others read.
class RandomTables {
 public:
  RandomTables(BlockHash hash, uint32_t seed)
      : random_(seed),
        cache_({.num_blocks = kNumBlocks, .block_tokens = kBlockTokens}, hash),
        tables_(6),
        texts_(6) {}

  void Step() {
    const size_t i = random_() % tables_.size();
    if (!tables_[i]) {
      Start(i);
    } else if (random_() % 4 == 0) {
      cache_.Release(tables_[i].get());
      tables_[i].reset();
    } else {
      Grow(i);
    }
    std::vector<const BlockTable*> all;
    for (const auto& table : tables_)
      if (table) all.push_back(table.get());
    cache_.CheckInvariants(all);
  }

  int num_shared() const { return num_shared_; }

 private:
  static constexpr int kNumBlocks = 20, kBlockTokens = 2;

  void Start(size_t i) {
    tables_[i] = std::make_unique<BlockTable>();
    tables_[i]->salt = PrefixSalt(random_() % 2 ? "x" : "", "");
    texts_[i].clear();
    const int length = 1 + static_cast<int>(random_() % 12);
    for (int k = 0; k < length; ++k) texts_[i].push_back({static_cast<int>(random_() % 2)});
    const int shared = cache_.Adopt(texts_[i], tables_[i].get());
    ASSERT_LT(shared, length);
    num_shared_ += shared;
    for (int k = 0; k < shared / kBlockTokens; ++k)
      ASSERT_EQ(content_[tables_[i]->blocks[k]], Content(i, k));
    written_[i] = shared;
  }

  void Grow(size_t i) {
    std::vector<TokenId>& text = texts_[i];
    if (written_[i] == static_cast<int>(text.size()))
      text.push_back({static_cast<int>(random_() % 2)});
    const int end = static_cast<int>(text.size());
    const bool has_draft = random_() % 3 == 0;
    if (!cache_.Reserve(end + (has_draft ? 3 : 0), tables_[i].get())) return;
    for (int k = written_[i] / kBlockTokens; k <= (end - 1) / kBlockTokens; ++k) {
      for (size_t other = 0; other < tables_.size(); ++other) {
        if (other == i || !tables_[other]) continue;
        for (const BlockId block : tables_[other]->blocks) ASSERT_NE(block, tables_[i]->blocks[k]);
      }
      content_[tables_[i]->blocks[k]] = Content(i, k);
    }
    written_[i] = end;
    cache_.Truncate(end, tables_[i].get());
    cache_.Publish(text, end, tables_[i].get());
  }

  // The salt and all tokens up to the end of block k, as far as there are any.
  std::vector<int64_t> Content(size_t i, int k) const {
    std::vector<int64_t> content{static_cast<int64_t>(tables_[i]->salt.lo)};
    for (int p = 0; p < (k + 1) * kBlockTokens && p < static_cast<int>(texts_[i].size()); ++p)
      content.push_back(texts_[i][p].value);
    return content;
  }

  std::mt19937 random_;
  KvCacheManager cache_;
  std::vector<std::unique_ptr<BlockTable>> tables_;
  std::vector<std::vector<TokenId>> texts_;
  std::map<size_t, int> written_;
  std::map<BlockId, std::vector<int64_t>> content_;
  int num_shared_ = 0;
};

void LiveAtRandom(BlockHash hash) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomTables tables(hash, seed);
  for (int step = 0; step < 5000 && !testing::Test::HasFatalFailure(); ++step) tables.Step();
  EXPECT_GT(tables.num_shared(), 100);
}

TEST(KvCacheManager, SharesOnlyBlocksThatHoldTheSamePrefix) { LiveAtRandom(&HashBlock); }
TEST(KvCacheManager, SharesOnlyBlocksThatHoldTheSamePrefixWhenAllKeysCollide) {
  LiveAtRandom([](const Hash128&, std::span<const TokenId>) { return Hash128{7, 7}; });
}

}  // namespace
}  // namespace hadal
