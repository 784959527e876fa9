#include "runner/ngram_drafter.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenId> Ids(const std::vector<int>& ids) {
  std::vector<TokenId> tokens;
  for (const int id : ids) tokens.push_back({id});
  return tokens;
}

std::vector<int> Guess(NgramDrafter* drafter, const std::vector<int>& text, int max_drafts) {
  const std::vector<TokenId> tokens = Ids(text);
  const SequenceSlice slice{.id = {1}};
  std::vector<TokenId> drafts;
  const DraftTask task{
      .slice = &slice, .text = tokens, .max_drafts = max_drafts, .drafts = &drafts};
  EXPECT_TRUE(drafter->Propose({}, {&task, 1}).ok());
  std::vector<int> ids;
  for (const TokenId draft : drafts) ids.push_back(draft.value);
  return ids;
}

TEST(NgramDrafter, GuessesWhatFollowedTheLastTokensBefore) {
  NgramDrafter drafter;
  EXPECT_THAT(Guess(&drafter, {1, 2, 3, 4, 5, 1, 2}, 3), ElementsAre(3, 4, 5));
}

TEST(NgramDrafter, GuessesNothingWhereNothingCameBefore) {
  NgramDrafter drafter;
  EXPECT_THAT(Guess(&drafter, {1}, 3), IsEmpty());
  EXPECT_THAT(Guess(&drafter, {1, 2, 3, 4, 3}, 3), IsEmpty());
}

TEST(NgramDrafter, PrefersTheLongerContextToTheLaterOne) {
  NgramDrafter drafter;
  EXPECT_THAT(Guess(&drafter, {7, 1, 2, 8, 9, 1, 2, 5, 7, 1, 2}, 1), ElementsAre(8));
  NgramDrafter equals;
  EXPECT_THAT(Guess(&equals, {1, 2, 8, 1, 2, 5, 1, 2}, 1), ElementsAre(5));
}

TEST(NgramDrafter, GoesOnWithARepetitionBehindTheEndOfTheText) {
  NgramDrafter drafter;
  EXPECT_THAT(Guess(&drafter, {1, 2, 3, 1, 2, 3}, 7), ElementsAre(1, 2, 3, 1, 2, 3, 1));
}

TEST(NgramDrafter, KeepsSequencesApartAndForgetsThoseThatEnded) {
  NgramDrafter drafter;
  EXPECT_THAT(Guess(&drafter, {1, 2, 3, 1, 2}, 1), ElementsAre(3));
  drafter.Forget({1});
  EXPECT_THAT(Guess(&drafter, {5, 6, 1, 2}, 1), IsEmpty());
}

// Against a search through all places.
TEST(SuffixIndex, FindsTheLongestOfTheLatestPlaces) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<TokenId> text;
    SuffixIndex index;
    for (int i = 0; i < 60; ++i) {
      text.push_back({static_cast<int>(random() % 3)});
      index.Extend(text);
      int best_end = -1, best_length = 1;
      for (int end = static_cast<int>(text.size()) - 1; end >= 2; --end) {
        int length = 0;
        while (length < std::min(end, SuffixIndex::kMaxMatch) &&
               text[static_cast<size_t>(end - 1 - length)] ==
                   text[text.size() - 1 - static_cast<size_t>(length)])
          ++length;
        if (length <= best_length) continue;
        best_length = length;
        best_end = end;
      }
      ASSERT_EQ(index.FindLongest(text), best_end) << "round " << round << " size " << text.size();
    }
  }
}

}  // namespace
}  // namespace hadal
