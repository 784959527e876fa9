#include "sys/machine.h"

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(Machine, ReadsTheQuotaOfAControlGroup) {
  EXPECT_EQ(CoresOfQuota("200000 100000"), 2);
  EXPECT_EQ(CoresOfQuota("150000 100000"), 2);  // one and a half: two workers, sometimes stopped
  EXPECT_EQ(CoresOfQuota("50000 100000"), 1);
  EXPECT_EQ(CoresOfQuota("max 100000"), 0);
  for (const char* nonsense : {"", "max", "200000", "x y", "-1 100000", "1 0", "9e9 1", "1 1 1"}) {
    EXPECT_EQ(CoresOfQuota(nonsense), 0) << nonsense;
  }
  EXPECT_GT(CoresOfQuota("9223372036854775807 1"), 0);
}

TEST(Machine, KnowsThisOne) {
  EXPECT_GE(NumUsableCores(), 1);
  EXPECT_GT(TotalMemoryBytes(), 0);
  EXPECT_GT(AvailableMemoryBytes(), 0);
  EXPECT_LE(AvailableMemoryBytes(), TotalMemoryBytes());
  EXPECT_GE(LastCacheBytes(), 0);
  EXPECT_FALSE(ProcessorName().empty());
  const std::string policy = HugePagePolicy();
  EXPECT_TRUE(policy == "always" || policy == "madvise" || policy == "never" || policy == "unknown")
      << policy;
}

}  // namespace
}  // namespace hadal
