#include "base/utf8.h"

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(Utf8, HoldsBackExactlyTheUnfinishedTail) {
  const std::string text = "a\u00e9\u4f60\U0001F600";
  EXPECT_EQ(UnfinishedTailLength(text), 0);
  EXPECT_EQ(UnfinishedTailLength(text.substr(0, text.size() - 1)), 3);
  EXPECT_EQ(UnfinishedTailLength(text.substr(0, text.size() - 3)), 1);
  EXPECT_EQ(UnfinishedTailLength("\xED\xA0"), 0);  // would be a surrogate: no byte can finish it
  EXPECT_EQ(UnfinishedTailLength("\x80\x80"), 0);
}

TEST(Utf8, RepairsAsUnicodeRecommends) {
  EXPECT_EQ(RepairUtf8("a\xF1\x80\x80z\xC0\xAF"), "a\uFFFDz\uFFFD\uFFFD");
  EXPECT_TRUE(IsValidUtf8("\U0010FFFF"));
  EXPECT_FALSE(IsValidUtf8("\xF4\x90\x80\x80"));
}

}  // namespace
}  // namespace hadal
