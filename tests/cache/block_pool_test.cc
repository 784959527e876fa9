#include "cache/block_pool.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(BlockPool, GivesTheLongestUnusedBlockFirst) {
  BlockPool pool(3);
  const BlockId a = pool.Take(), b = pool.Take(), c = pool.Take();
  EXPECT_EQ(pool.num_free(), 0);
  pool.Unref(b);
  pool.Unref(a);
  pool.Unref(c);
  EXPECT_EQ(pool.Take(), b);
  EXPECT_EQ(pool.Take(), a);
  EXPECT_EQ(pool.Take(), c);
}

TEST(BlockPool, TakesWorthlessBlocksBeforeReusableOnes) {
  BlockPool pool(2);
  const BlockId a = pool.Take(), b = pool.Take();
  pool.Unref(a);
  pool.Discard(b);
  EXPECT_EQ(pool.Take(), b);
}

TEST(BlockPool, KeepsAFreeBlockThatIsReferredToAgain) {
  BlockPool pool(2);
  const BlockId a = pool.Take();
  pool.Unref(a);
  pool.Ref(a);
  EXPECT_EQ(pool.ref_count(a), 1);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_NE(pool.Take(), a);
}

TEST(BlockPool, FreesASharedBlockOnlyWithItsLastHolder) {
  BlockPool pool(1);
  const BlockId a = pool.Take();
  pool.Ref(a);
  pool.Unref(a);
  EXPECT_EQ(pool.num_free(), 0);
  pool.Unref(a);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockPool, HoldsItsInvariantsWithoutAnyBlock) {
  const BlockPool pool(0);
  EXPECT_EQ(pool.num_free(), 0);
  pool.CheckInvariants();
}

// Random operations against counts in a map and a list of free blocks.
TEST(BlockPool, AgreesWithASimpleModel) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr int kNumBlocks = 12;
  BlockPool pool(kNumBlocks);
  std::deque<int> free_list;
  for (int i = 0; i < kNumBlocks; ++i) free_list.push_back(i);
  std::map<int, int> counts;
  for (int step = 0; step < 20000; ++step) {
    const int block = static_cast<int>(random() % kNumBlocks);
    switch (random() % 4) {
      case 0:
        if (free_list.empty()) break;
        ASSERT_EQ(pool.Take().value, free_list.front());
        counts[free_list.front()] = 1;
        free_list.pop_front();
        break;
      case 1:
        pool.Ref(BlockId{block});
        if (counts[block]++ == 0) std::erase(free_list, block);
        break;
      case 2:
        if (counts[block] == 0) break;
        pool.Unref(BlockId{block});
        if (--counts[block] == 0) free_list.push_back(block);
        break;
      default:
        if (counts[block] == 0) break;
        pool.Discard(BlockId{block});
        if (--counts[block] == 0) free_list.push_front(block);
    }
    pool.CheckInvariants();
    ASSERT_EQ(pool.num_free(), static_cast<int>(free_list.size()));
    ASSERT_EQ(pool.ref_count(BlockId{block}), counts[block]);
  }
}

}  // namespace
}  // namespace hadal
