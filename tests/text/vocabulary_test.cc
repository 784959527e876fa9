#include "text/vocabulary.h"

#include <string>

#include <gtest/gtest.h>

namespace hadal {
namespace {

using Added = Vocabulary::AddResult;

TEST(Vocabulary, FindsEveryWordAfterGrowing) {
  Vocabulary vocabulary;
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(vocabulary.AddWord(TokenId{2 * i}, "word" + std::to_string(i)), Added::kAdded);
  }
  EXPECT_EQ(vocabulary.size(), 9999);
  for (int i = 0; i < 5000; ++i) {
    const std::string word = "word" + std::to_string(i);
    ASSERT_EQ(vocabulary.Find(word), TokenId{2 * i});
    ASSERT_EQ(vocabulary.Bytes(TokenId{2 * i}), word);
    ASSERT_FALSE(vocabulary.Has(TokenId{2 * i + 1})) << "a hole";
  }
  EXPECT_EQ(vocabulary.Find("word5000"), kNoToken);
}

TEST(Vocabulary, SaysWhichOfIdAndBytesIsTaken) {
  Vocabulary vocabulary;
  ASSERT_EQ(vocabulary.AddWord(TokenId{3}, "a"), Added::kAdded);
  EXPECT_EQ(vocabulary.AddWord(TokenId{3}, "b"), Added::kIdTaken);
  EXPECT_EQ(vocabulary.AddWord(TokenId{4}, "a"), Added::kBytesTaken);
  EXPECT_EQ(vocabulary.AddLiteral(TokenId{3}, "c"), Added::kIdTaken);
}

TEST(Vocabulary, DecodesLiteralsButDoesNotFindThem) {
  Vocabulary vocabulary;
  ASSERT_EQ(vocabulary.AddLiteral(TokenId{1}, "<end>"), Added::kAdded);
  EXPECT_EQ(vocabulary.Bytes(TokenId{1}), "<end>");
  EXPECT_EQ(vocabulary.Find("<end>"), kNoToken);
}

TEST(Vocabulary, GivesNothingForIdsOutsideTheTable) {
  const Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.Bytes(TokenId{-1}), "");
  EXPECT_EQ(vocabulary.Bytes(TokenId{INT32_MAX}), "");
  EXPECT_EQ(vocabulary.Find("a"), kNoToken);
}

}  // namespace
}  // namespace hadal
