#include "runner/sequence_texts.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::ElementsAre;

// What one slice tells: tokens at `num_cached`, the last `num_drafts` of them guesses, of which the
// drawn tokens take all but their last.
struct Told {
  std::vector<int> history = {};
  int num_cached = 0;
  std::vector<int> tokens;
  int num_drafts = 0;
  std::vector<int> drawn = {};
};

std::vector<int> Extend(SequenceTexts* texts, const Told& told) {
  BatchPlan plan;
  StepResult result;
  for (const int id : told.history) plan.history.push_back({id});
  for (const int id : told.tokens) plan.tokens.push_back({id});
  for (const int id : told.drawn) result.tokens.push_back({.token = {id}});
  const SequenceSlice slice{.id = {1},
                            .num_tokens = static_cast<int>(told.tokens.size()),
                            .num_cached = told.num_cached,
                            .num_drafts = told.num_drafts,
                            .num_history = static_cast<int>(told.history.size())};
  const SliceResult drawn{.id = {1}, .num_tokens = static_cast<int>(told.drawn.size())};
  std::vector<int> ids;
  for (const TokenId id : texts->Extend(plan, slice, drawn, result)) ids.push_back(id.value);
  return ids;
}

TEST(SequenceTexts, GrowByWhatIsReadAndDrawn) {
  SequenceTexts texts;
  EXPECT_THAT(Extend(&texts, {.tokens = {1, 2}}), ElementsAre(1, 2));
  EXPECT_THAT(Extend(&texts, {.num_cached = 2, .tokens = {3}, .drawn = {4}}),
              ElementsAre(1, 2, 3, 4));
}

TEST(SequenceTexts, LeaveOutRejectedDrafts) {
  SequenceTexts texts;
  EXPECT_THAT(Extend(&texts, {.tokens = {1}, .drawn = {2}}), ElementsAre(1, 2));
  EXPECT_THAT(
      Extend(&texts, {.num_cached = 1, .tokens = {2, 3, 9, 9}, .num_drafts = 3, .drawn = {3, 4}}),
      ElementsAre(1, 2, 3, 4));
}

TEST(SequenceTexts, BeginWithTheHistoryOfASharedPrefix) {
  SequenceTexts texts;
  EXPECT_THAT(Extend(&texts, {.history = {1, 2}, .num_cached = 2, .tokens = {3}, .drawn = {4}}),
              ElementsAre(1, 2, 3, 4));
}

TEST(SequenceTexts, ReadAgainAfterPreemptionGiveOnlyWhatWasReadSoFar) {
  SequenceTexts texts;
  Extend(&texts, {.tokens = {1, 2, 3}, .drawn = {4}});
  EXPECT_THAT(Extend(&texts, {.tokens = {1, 2}}), ElementsAre(1, 2));
  EXPECT_THAT(Extend(&texts, {.num_cached = 3, .tokens = {4}, .drawn = {5}}),
              ElementsAre(1, 2, 3, 4, 5))
      << "found in the cache: the rest was known";
}

}  // namespace
}  // namespace hadal
