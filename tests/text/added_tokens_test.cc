#include "text/added_tokens.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

struct Found {
  int id;
  std::string text;
  bool operator==(const Found&) const = default;
};

std::vector<Found> Find(const AddedTokens& tokens, std::string_view text,
                        const std::vector<TextRange>& markup) {
  std::vector<AddedTokenMatch> matches;
  tokens.Find(text, markup, &matches);
  std::vector<Found> found;
  for (const AddedTokenMatch& match : matches) {
    found.push_back({match.id.value, std::string(text.substr(
                                         match.range.begin, match.range.end - match.range.begin))});
  }
  return found;
}

std::vector<Found> FindAll(const AddedTokens& tokens, std::string_view text) {
  return Find(tokens, text, {{0, text.size()}});
}

AddedToken Token(int id, std::string content) {
  AddedToken token;
  token.id = TokenId{id};
  token.content = std::move(content);
  token.is_special = true;
  return token;
}

TEST(AddedTokens, TakesTheLeftmostAndOfThoseTheLongest) {
  const AddedTokens tokens({Token(1, "<a>"), Token(2, "<a><b>"), Token(3, "><b"), Token(4, "<b>")});
  EXPECT_EQ(FindAll(tokens, "x<a><b><a><c"), (std::vector<Found>{{2, "<a><b>"}, {1, "<a>"}}));
  EXPECT_EQ(FindAll(tokens, "<a<b>"), (std::vector<Found>{{4, "<b>"}}));
}

TEST(AddedTokens, MustLieWhollyInOneRangeOfMarkup) {
  const AddedTokens tokens({Token(1, "<a>"), Token(2, "<a><a>")});
  const std::string text = "<a><a>";
  EXPECT_EQ(Find(tokens, text, {}), std::vector<Found>{});
  EXPECT_EQ(Find(tokens, text, {{0, 2}}), std::vector<Found>{});
  EXPECT_EQ(Find(tokens, text, {{1, 6}}), (std::vector<Found>{{1, "<a>"}}));
  EXPECT_EQ(Find(tokens, text, {{0, 3}}), (std::vector<Found>{{1, "<a>"}}))
      << "the longer name ends outside";
  EXPECT_EQ(Find(tokens, text, {{0, 6}}), (std::vector<Found>{{2, "<a><a>"}}));
}

TEST(AddedTokens, FindsLettersOfOrdinaryTextEverywhere) {
  AddedToken letter = Token(7, "\u00fc");
  letter.is_special = false;
  AddedToken mark = Token(8, "<think>");
  mark.is_special = false;
  const AddedTokens tokens({letter, mark, Token(9, "\u00f8")});
  EXPECT_EQ(Find(tokens, "F\u00fc\u00f8<think>", {}), (std::vector<Found>{{7, "\u00fc"}}));
}

TEST(AddedTokens, TakesNormalizedOnesOnlyFromWhatTheOthersLeave) {
  AddedToken early = Token(1, "ab"), late = Token(2, "xa");
  late.is_normalized = true;
  EXPECT_EQ(FindAll(AddedTokens({early, late}), "xab xa"),
            (std::vector<Found>{{1, "ab"}, {2, "xa"}}));
  late.is_normalized = false;
  EXPECT_EQ(FindAll(AddedTokens({early, late}), "xab xa"),
            (std::vector<Found>{{2, "xa"}, {2, "xa"}}));
}

TEST(AddedTokens, TakeWhiteSpaceAlongWhereTheFileSaysSo) {
  AddedToken left = Token(1, "<l>"), right = Token(2, "<r>");
  left.strips_left = true;
  right.strips_right = true;
  const AddedTokens tokens({left, right});
  EXPECT_EQ(FindAll(tokens, "a \u3000<l> b"), (std::vector<Found>{{1, " \u3000<l>"}}));
  EXPECT_EQ(FindAll(tokens, "a <r>\n b"), (std::vector<Found>{{2, "<r>\n "}}));
  EXPECT_EQ(FindAll(tokens, "<r>  <l>"), (std::vector<Found>{{2, "<r>  "}, {1, "<l>"}}))
      << "what one has taken is gone for the next";
}

TEST(AddedTokens, SingleWordsStandAlone) {
  AddedToken word = Token(1, "end");
  word.is_single_word = true;
  const AddedTokens tokens({word});
  EXPECT_EQ(FindAll(tokens, "end (end) bend ende end_ \u00e9end end"),
            (std::vector<Found>{{1, "end"}, {1, "end"}, {1, "end"}}));
}

TEST(AddedTokens, FindsContentsByName) {
  const AddedTokens tokens({Token(1, "<b>"), Token(2, "<a>")});
  ASSERT_NE(tokens.FindContent("<a>"), nullptr);
  EXPECT_EQ(tokens.FindContent("<a>")->id, TokenId{2});
  EXPECT_EQ(tokens.FindContent("<"), nullptr);
}

}  // namespace
}  // namespace hadal
