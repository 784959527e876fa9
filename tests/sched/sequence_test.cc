#include "sched/sequence.h"

#include <vector>

#include <gtest/gtest.h>

#include "sched/request_queue.h"

namespace hadal {
namespace {

Request MakeRequest(int64_t id, int num_prompt_tokens) {
  Request request;
  request.id = {id};
  request.prompt.assign(static_cast<size_t>(num_prompt_tokens), TokenId{5});
  request.stop_tokens = {TokenId{1}, TokenId{2}};
  return request;
}

TEST(Sequence, EndsWithLengthAtItsLastToken) {
  Sequence sequence(MakeRequest(0, 3), 0, 0, 5);
  EXPECT_EQ(sequence.Append({7}), FinishReason::kNone);
  EXPECT_EQ(sequence.Append({8}), FinishReason::kLength);
  EXPECT_EQ(sequence.num_output_tokens(), 2);
}

TEST(Sequence, LeavesAStopTokenOut) {
  Sequence sequence(MakeRequest(0, 3), 0, 0, 4);
  EXPECT_EQ(sequence.Append({2}), FinishReason::kStop);
  EXPECT_EQ(sequence.num_output_tokens(), 0);
}

TEST(Sequence, KeepsOnlyDraftsThatMayBecomeOutput) {
  Sequence sequence(MakeRequest(0, 3), 0, 0, 6);
  const std::vector<TokenId> guesses{{7}, {8}, {9}, {10}};
  sequence.SetDrafts(guesses);
  EXPECT_EQ(sequence.drafts.size(), 2u);  // of three tokens to come the last follows the drafts
}

TEST(Sequence, TakesMemoryForAllThatMayCome) {
  Sequence sequence(MakeRequest(0, 3), 0, 0, 100);
  sequence.ReserveMemory(4);
  const TokenId* const place = sequence.tokens().data();
  for (int i = 0; i < 97; ++i) ASSERT_EQ(sequence.Append({7}) == FinishReason::kLength, i == 96);
  EXPECT_EQ(sequence.tokens().data(), place);
  EXPECT_GE(sequence.table.blocks.capacity(), 25u);
}

TEST(RequestQueue, OrdersByWhenSequencesAreDueThenByArrival) {
  Sequence late(MakeRequest(0, 1), 9, 50, 4), early(MakeRequest(1, 1), 3, 50, 4);
  Sequence urgent(MakeRequest(2, 1), 12, 20, 4);
  RequestQueue queue;
  queue.Push(&late);
  queue.Push(&early);
  queue.Push(&urgent);
  std::vector<int64_t> order;
  for (const Sequence* sequence : queue) order.push_back(sequence->id().value);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 1, 0}));
  queue.Remove(&early);
  EXPECT_EQ(queue.size(), 2);
}

}  // namespace
}  // namespace hadal
