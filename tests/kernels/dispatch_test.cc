#include "kernels/dispatch.h"

#include <cstring>

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(Dispatch, StartsFromTheReference) {
  ASSERT_FALSE(UsableKernels().empty());
  EXPECT_STREQ(UsableKernels().front()->name, "reference");
  EXPECT_EQ(&BestKernels(), UsableKernels().back());
}

TEST(Dispatch, ListsUsableSetsAmongThoseOfTheBuild) {
  size_t num_usable = 0;
  for (const KernelSet& set : BuiltKernelSets()) {
    ASSERT_NE(set.name, nullptr);
    if (set.table == nullptr) continue;
    EXPECT_EQ(set.table, UsableKernels()[num_usable++]);
    EXPECT_STREQ(set.name, set.table->name);
  }
  EXPECT_EQ(num_usable, UsableKernels().size());
}

TEST(Dispatch, FindsByName) {
  for (const KernelTable* table : UsableKernels()) EXPECT_EQ(FindKernels(table->name), table);
  EXPECT_EQ(FindKernels("no such set"), nullptr);
}

TEST(Dispatch, LeavesNoEntryEmpty) {
  for (const KernelTable* table : UsableKernels()) {
    for (size_t at = 0; at < sizeof(KernelTable); at += sizeof(void*)) {
      uintptr_t entry = 0;
      std::memcpy(&entry, reinterpret_cast<const char*>(table) + at, sizeof(entry));
      EXPECT_NE(entry, 0u) << table->name << ", entry " << at / sizeof(void*);
    }
  }
}

}  // namespace
}  // namespace hadal
