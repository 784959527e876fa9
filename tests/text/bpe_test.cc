#include "text/bpe.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.h"

namespace hadal {
namespace {

struct TestBpe {
  Vocabulary vocabulary;
  std::vector<BpeMerge> merges;

  explicit TestBpe(std::string_view letters) {
    int id = 0;
    for (const char c : letters) vocabulary.AddWord(TokenId{id++}, std::string_view(&c, 1));
  }
  void AddMerge(const std::string& left, const std::string& right) {
    if (vocabulary.Find(left + right) == kNoToken) {
      vocabulary.AddWord(TokenId{vocabulary.size()}, left + right);
    }
    merges.push_back(
        {vocabulary.Find(left), vocabulary.Find(right), vocabulary.Find(left + right)});
  }
  Bpe Build(Bpe::Options options = {}) const { return Bpe(vocabulary, merges, options); }
};

// The definition, word for word: all ranks are looked at before each merge.
std::vector<TokenId> MergeNaively(const TestBpe& test, const std::string& text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(test.vocabulary.Find(std::string_view(&c, 1)));
  std::map<std::pair<TokenId, TokenId>, std::pair<size_t, TokenId>> ranks;
  for (size_t i = 0; i < test.merges.size(); ++i) {
    ranks[{test.merges[i].left, test.merges[i].right}] = {i, test.merges[i].merged};
  }
  while (true) {
    size_t best_rank = SIZE_MAX, best = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto it = ranks.find({ids[i], ids[i + 1]});
      if (it != ranks.end() && it->second.first < best_rank) {
        best_rank = it->second.first;
        best = i;
      }
    }
    if (best_rank == SIZE_MAX) return ids;
    ids[best] = ranks.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

std::vector<TokenId> Encode(const Bpe& bpe, std::string_view text) {
  BpeScratch scratch;
  std::vector<TokenId> ids;
  bpe.Encode(text, &scratch, &ids);
  return ids;
}

TEST(Bpe, MergesTheLeftmostOfEqualRanks) {
  TestBpe test("z");
  test.AddMerge("z", "z");
  const TokenId z = test.vocabulary.Find("z"), zz = test.vocabulary.Find("zz");
  EXPECT_EQ(Encode(test.Build(), "zzz"), (std::vector<TokenId>{zz, z}));
}

TEST(Bpe, MergesTheLowestRankFirstWhereverItStands) {
  TestBpe test("abc");
  test.AddMerge("b", "c");
  test.AddMerge("a", "b");
  const TokenId a = test.vocabulary.Find("a"), bc = test.vocabulary.Find("bc");
  EXPECT_EQ(Encode(test.Build(), "abc"), (std::vector<TokenId>{a, bc}));
}

TEST(Bpe, DoesNotTakeAWordThatTheMergesDoNotBuild) {
  TestBpe test("abc");
  test.AddMerge("b", "c");
  test.AddMerge("a", "b");
  test.vocabulary.AddWord(TokenId{50}, "abc");
  const Bpe bpe = test.Build();
  const std::vector<TokenId> merged = MergeNaively(test, "abc");
  EXPECT_EQ(Encode(bpe, "abc"), merged);
  EXPECT_EQ(Encode(bpe, "abc"), merged) << "the second time, from what was remembered";
  EXPECT_EQ(Encode(test.Build({.ignore_merges = true}), "abc"), std::vector<TokenId>{TokenId{50}});
}

TEST(Bpe, LeavesOutBytesWithoutAToken) {
  TestBpe test("ab");
  test.AddMerge("a", "b");
  EXPECT_EQ(Encode(test.Build(), "a\nb"), std::vector<TokenId>{test.vocabulary.Find("ab")});
}

// Short and long pieces take different ways; both must be the definition.
TEST(Bpe, IsTheDefinitionOnRandomVocabularies) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 60; ++round) {
    TestBpe test("abcd");
    std::vector<std::string> words = {"a", "b", "c", "d"};
    for (int i = 0; i < 40; ++i) {
      const std::string left = words[below(words.size())], right = words[below(words.size())];
      if (left.size() + right.size() > 12) continue;
      test.AddMerge(left, right);
      words.push_back(left + right);
    }
    const Bpe bpe = test.Build();
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (size_t left = 1 + below(i % 2 == 0 ? 24 : 200); left > 0; --left) {
        text += "abcd"[below(below(2) == 0 ? 4 : 2)];
      }
      ASSERT_EQ(Encode(bpe, text), MergeNaively(test, text)) << text;
    }
  }
}

// C004: work, not time, so that a busy machine does not matter.
TEST(Bpe, DoublesItsWorkWhenARunOfOneLetterDoubles) {
  TestBpe test("Z ");
  std::string word = "Z", spaces = " ";
  for (int i = 0; i < 6; ++i, word += word, spaces += spaces) {
    test.AddMerge(word, word);
    test.AddMerge(spaces, spaces);
  }
  const Bpe bpe = test.Build();
  for (const char letter : {'Z', ' '}) {
    const auto work = [&](size_t length) {
      BpeScratch scratch;
      std::vector<TokenId> ids;
      bpe.Encode(std::string(length, letter), &scratch, &ids);
      EXPECT_EQ(ids.size(), length / 64);
      return scratch.num_lookups;
    };
    const int64_t once = work(65536), twice = work(131072);
    EXPECT_LE(twice, once * 21 / 10);
    EXPECT_LE(once, 65536 * 4);
  }
}

}  // namespace
}  // namespace hadal
