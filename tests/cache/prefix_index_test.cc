#include "cache/prefix_index.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

std::vector<TokenId> Tokens(std::initializer_list<int> values) {
  std::vector<TokenId> tokens;
  for (const int value : values) tokens.push_back({value});
  return tokens;
}

Hash128 ConstantHash(const Hash128&, std::span<const TokenId>) { return {1, 2}; }

const PrefixNode kRoot = PrefixIndex::Root({});

TEST(PrefixIndex, FindsABlockOnlyBehindItsOwnParent) {
  PrefixIndex index(4, 2);
  const PrefixNode a = index.Insert(kRoot, Tokens({1, 2}), BlockId{0});
  const PrefixNode b = index.Insert(kRoot, Tokens({3, 4}), BlockId{1});
  index.Insert(a, Tokens({5, 6}), BlockId{2});
  EXPECT_EQ(index.Find(a, Tokens({5, 6}))->block, BlockId{2});
  EXPECT_FALSE(index.Find(b, Tokens({5, 6})));
  EXPECT_FALSE(index.Find(kRoot, Tokens({5, 6})));
  EXPECT_FALSE(index.Find(a, Tokens({6, 5})));
  index.CheckInvariants();
}

// C093: a collision of hashes returned the cache of another prompt.
TEST(PrefixIndex, ComparesTokensWhenAllKeysCollide) {
  PrefixIndex index(8, 2, &ConstantHash);
  const PrefixNode a = index.Insert(kRoot, Tokens({1, 1}), BlockId{0});
  index.Insert(a, Tokens({2, 2}), BlockId{1});
  EXPECT_FALSE(index.Find(kRoot, Tokens({9, 9})));
  const PrefixNode b = index.Insert(kRoot, Tokens({9, 9}), BlockId{2});
  EXPECT_FALSE(index.Find(b, Tokens({2, 2}))) << "differs in the first block only";
  EXPECT_FALSE(index.Find(a, Tokens({3, 3}))) << "differs in the second block only";
  index.CheckInvariants();
}

// C093, after eviction: the parent is gone and another prompt with a colliding key took its place.
TEST(PrefixIndex, DoesNotFindChildrenOfAnErasedParentUnderItsSuccessor) {
  PrefixIndex index(8, 2, &ConstantHash);
  const PrefixNode a = index.Insert(kRoot, Tokens({1, 1}), BlockId{0});
  index.Insert(a, Tokens({2, 2}), BlockId{1});
  index.Erase(BlockId{0});
  EXPECT_FALSE(index.IsAlive(a));
  const PrefixNode b = index.Insert(kRoot, Tokens({9, 9}), BlockId{0});
  EXPECT_FALSE(index.IsAlive(a));
  EXPECT_TRUE(index.IsAlive(b));
  EXPECT_FALSE(index.Find(b, Tokens({2, 2})));
}

// C094: salt and name of an adapter collided.
TEST(PrefixIndex, KeepsSaltsAndAdaptersApart) {
  const std::pair<const char*, const char*> kinds[] = {
      {"x", ""}, {"", "x"}, {"a", "bc"}, {"ab", "c"}, {"", ""}};
  PrefixIndex index(8, 2);
  int block = 0;
  for (const auto& [salt, adapter] : kinds) {
    const PrefixNode root = PrefixIndex::Root(PrefixSalt(salt, adapter));
    EXPECT_FALSE(index.Find(root, Tokens({1, 2}))) << salt << "|" << adapter;
    index.Insert(root, Tokens({1, 2}), BlockId{block++});
    EXPECT_TRUE(index.Find(root, Tokens({1, 2})));
  }
  index.CheckInvariants();
}

TEST(PrefixIndex, KeepsSaltsApartEvenWhenAllKeysCollide) {
  PrefixIndex index(4, 2, &ConstantHash);
  index.Insert(PrefixIndex::Root(PrefixSalt("x", "")), Tokens({1, 2}), BlockId{0});
  EXPECT_FALSE(index.Find(PrefixIndex::Root(PrefixSalt("y", "")), Tokens({1, 2})));
}

// Random insertions and erasures against a map from whole prefixes to blocks.
void CompareWithMap(BlockHash hash, uint32_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr int kNumBlocks = 16;
  PrefixIndex index(kNumBlocks, 1, hash);
  std::map<int, std::pair<PrefixNode, std::vector<int>>> live;  // block -> node, prefix
  std::map<std::vector<int>, int> by_prefix;                    // findable prefixes
  for (int step = 0; step < 5000; ++step) {
    const int block = static_cast<int>(random() % kNumBlocks);
    if (live.contains(block)) {
      // Entries below an erased one stay but cannot be reached: the model drops them from its map.
      const std::vector<int> prefix = live[block].second;
      const auto reachable = by_prefix.find(prefix);
      if (reachable != by_prefix.end() && reachable->second == block) {
        std::erase_if(by_prefix, [&](const auto& item) {
          return item.first.size() >= prefix.size() &&
                 std::equal(prefix.begin(), prefix.end(), item.first.begin());
        });
      }
      index.Erase(BlockId{block});
      live.erase(block);
    } else {
      PrefixNode node = kRoot;
      std::vector<int> prefix;
      for (int depth = 0; depth < 4; ++depth) {
        const int token = static_cast<int>(random() % 3);
        prefix.push_back(token);
        const std::optional<PrefixNode> found = index.Find(node, Tokens({token}));
        ASSERT_EQ(found.has_value(), by_prefix.contains(prefix));
        if (!found) {
          live[block] = {index.Insert(node, Tokens({token}), BlockId{block}), prefix};
          by_prefix[prefix] = block;
          break;
        }
        ASSERT_EQ(found->block.value, by_prefix[prefix]);
        node = *found;
      }
    }
    index.CheckInvariants();
    ASSERT_EQ(index.num_entries(), static_cast<int>(live.size()));
  }
}

TEST(PrefixIndex, AgreesWithASimpleModel) { CompareWithMap(&HashBlock, std::random_device{}()); }
TEST(PrefixIndex, AgreesWithASimpleModelWhenAllKeysCollide) {
  CompareWithMap(&ConstantHash, std::random_device{}());
}

}  // namespace
}  // namespace hadal
