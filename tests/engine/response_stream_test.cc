#include "engine/response_stream.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "engine/response_collector.h"
#include "tests/support/alloc_guard.h"

namespace hadal {
namespace {

using Kind = MessageDelta::Kind;

ResponseHead Head(int num_choices) {
  ResponseHead head;
  for (int i = 0; i < num_choices; ++i) head.sequences.push_back({i});
  return head;
}

ResponseChunk End(int choice_idx) {
  ResponseChunk part;
  part.ends.push_back({.choice_idx = choice_idx,
                       .finish = FinishReason::kStop,
                       .error = "",
                       .stop_string = "",
                       .usage = {},
                       .timings = {}});
  return part;
}

TEST(ResponseChunk, JoinsNeighboursOfOneKind) {
  ResponseChunk chunk;
  chunk.AddPiece(0, Kind::kContent, 0, "a");
  chunk.AddPiece(0, Kind::kContent, 0, "");
  chunk.AddPiece(0, Kind::kContent, 0, "b");
  chunk.AddPiece(1, Kind::kContent, 0, "c");
  chunk.AddPiece(1, Kind::kToolCallStart, 0, "f");
  chunk.AddPiece(1, Kind::kToolCallStart, 1, "g");
  ASSERT_EQ(chunk.pieces.size(), 4u);
  EXPECT_EQ(chunk.TextOf(chunk.pieces[0]), "ab");
  EXPECT_EQ(chunk.TextOf(chunk.pieces[3]), "g");
}

TEST(ResponseChunk, KeepsAlternativesWithTheirTokens) {
  StepResult result;
  result.top_logprobs = {{TokenId{1}, -1.0f}, {TokenId{2}, -2.0f}, {TokenId{3}, -3.0f}};
  ResponseChunk first, second;
  first.AddToken(0, {.token = {1}, .top_begin = 0, .num_top = 1}, result);
  second.AddToken(0, {.token = {3}, .top_begin = 1, .num_top = 2}, result);
  first.Append(second);
  ASSERT_EQ(first.top_logprobs.size(), 3u);
  EXPECT_EQ(first.tokens[1].token.top_begin, 1);
  EXPECT_EQ(first.top_logprobs[2].token.value, 3);
}

TEST(ResponseStream, EndsWhenAllChoicesHaveEndedAndAllWasRead) {
  ResponseStream stream(Head(2), 1000);
  ResponseChunk chunk;
  stream.Write(End(1));
  ASSERT_TRUE(stream.Next(&chunk));
  EXPECT_EQ(stream.NextWithin(std::chrono::milliseconds(1), &chunk),
            ResponseStream::ReadOutcome::kTimeout);
  ResponseChunk part = End(0);
  part.AddPiece(0, Kind::kContent, 0, "last");
  stream.Write(part);
  ASSERT_TRUE(stream.Next(&chunk));
  EXPECT_EQ(chunk.text, "last");
  EXPECT_FALSE(stream.Next(&chunk));
  EXPECT_EQ(stream.NextWithin(std::chrono::milliseconds(1), &chunk),
            ResponseStream::ReadOutcome::kEnd);
}

TEST(ResponseStream, SaysWhenItsReaderIsTooFarBehind) {
  ResponseStream stream(Head(1), 10);
  ResponseChunk part;
  part.AddPiece(0, Kind::kContent, 0, "12345678");
  EXPECT_TRUE(stream.Write(part));
  EXPECT_FALSE(stream.Write(part));
  ResponseChunk chunk;
  ASSERT_TRUE(stream.Next(&chunk));
  EXPECT_EQ(chunk.text, "1234567812345678");
  EXPECT_TRUE(stream.Write(part));
}

TEST(ResponseStream, LosesNothingBetweenTwoThreads) {
  ResponseStream stream(Head(1), 1 << 20);
  std::string expected;
  for (int i = 0; i < 2000; ++i) expected += std::to_string(i);
  std::thread writer([&stream] {
    ResponseChunk part;
    for (int i = 0; i < 2000; ++i) {
      part.Clear();
      part.AddPiece(0, Kind::kContent, 0, std::to_string(i));
      stream.Write(part);
    }
    stream.Write(End(0));
  });
  ResponseCollector collector(1);
  collector.ReadAll(&stream);
  writer.join();
  EXPECT_EQ(collector.choices()[0].content, expected);
  EXPECT_EQ(collector.choices()[0].end.finish, FinishReason::kStop);
}

TEST(ResponseStream, TellsItsListenerOnceUntilTheNextRead) {
  ResponseStream stream(Head(1), 1 << 20);
  ResponseChunk part, chunk;
  part.AddPiece(0, Kind::kContent, 0, "word");
  stream.Write(part);
  int num_told = 0;
  stream.SetListener([&num_told] { ++num_told; });
  EXPECT_EQ(num_told, 1) << "news from before it listened";
  stream.Write(part);
  EXPECT_EQ(num_told, 1);
  const auto no_time = std::chrono::milliseconds(0);
  EXPECT_EQ(stream.NextWithin(no_time, &chunk), ResponseStream::ReadOutcome::kChunk);
  EXPECT_EQ(stream.NextWithin(no_time, &chunk), ResponseStream::ReadOutcome::kTimeout);
  stream.Write(End(0));
  EXPECT_EQ(num_told, 2);
  EXPECT_EQ(stream.NextWithin(no_time, &chunk), ResponseStream::ReadOutcome::kChunk);
  EXPECT_EQ(stream.NextWithin(no_time, &chunk), ResponseStream::ReadOutcome::kEnd);
}

TEST(ResponseStream, AllocatesNothingOnceItsMemoryWasSwapped) {
  ResponseStream stream(Head(1), 1 << 20);
  ResponseChunk part, chunk;
  part.AddPiece(0, Kind::kContent, 0, "some words of text");
  part.AddToken(0, {.token = {1}}, {});
  for (int i = 0; i < 4; ++i) {
    stream.Write(part);
    ASSERT_TRUE(stream.Next(&chunk));
  }
  const AllocGuard guard;
  for (int i = 0; i < 100; ++i) {
    stream.Write(part);
    ASSERT_TRUE(stream.Next(&chunk));
  }
  EXPECT_EQ(guard.count(), 0);
}

TEST(ResponseCollector, KeepsKindsAndChoicesApart) {
  ResponseChunk chunk;
  chunk.AddPiece(0, Kind::kReasoning, 0, "hm");
  chunk.AddPiece(0, Kind::kContent, 0, "yes");
  chunk.AddPiece(1, Kind::kToolCallStart, 0, "f");
  chunk.AddPiece(1, Kind::kToolCallArguments, 0, "{}");
  ResponseCollector collector(2);
  collector.Add(chunk);
  EXPECT_EQ(collector.choices()[0].reasoning, "hm");
  EXPECT_EQ(collector.choices()[0].content, "yes");
  ASSERT_EQ(collector.choices()[1].tool_calls.size(), 1u);
  EXPECT_EQ(collector.choices()[1].tool_calls[0].arguments, "{}");
}

}  // namespace
}  // namespace hadal
