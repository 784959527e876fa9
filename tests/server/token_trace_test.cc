#include "server/token_trace.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace hadal {
namespace {

using Kind = MessageDelta::Kind;

class TokenTraceTest : public testing::Test {
 protected:
  void AddTokens(std::string_view text, TokenTrace* trace) {
    for (const TokenId token : tokenizer_->EncodeWithSpecials(text))
      trace->AddToken({.token = token, .logprob = -1}, {});
  }
  std::string TextOf(const std::vector<TracedToken>& tokens) {
    std::string text;
    for (const TracedToken& token : tokens) text += tokenizer_->TokenBytes(token.token);
    return text;
  }
  std::unique_ptr<Tokenizer> tokenizer_ = TinyTokenizer();
};

TEST_F(TokenTraceTest, HoldsTokensBackUntilTheirTextIsOut) {
  TokenTrace trace(tokenizer_.get(), false, true);
  AddTokens("one two three", &trace);
  EXPECT_TRUE(trace.TakeContent().empty());
  trace.AddText(Kind::kContent, 3);
  EXPECT_EQ(TextOf(trace.TakeContent()), "one");
  trace.AddText(Kind::kContent, 10);
  EXPECT_EQ(TextOf(trace.TakeContent()), " two three");
}

TEST_F(TokenTraceTest, DropsWhatAStopStringCutOff) {
  TokenTrace trace(tokenizer_.get(), false, true);
  AddTokens("one two", &trace);
  trace.AddText(Kind::kContent, 3);
  EXPECT_EQ(TextOf(trace.TakeContent()), "one");
  EXPECT_TRUE(trace.TakeContent().empty());
}

TEST_F(TokenTraceTest, KeepsReasoningAnswerAndCallsApart) {
  TokenTrace trace(tokenizer_.get(), true, true);
  AddTokens("think</think>answer<｜tool▁calls▁begin｜>f", &trace);
  trace.AddText(Kind::kReasoning, 5);
  trace.AddText(Kind::kContent, 100);
  EXPECT_EQ(TextOf(trace.TakeReasoning()), "think");
  EXPECT_EQ(TextOf(trace.TakeContent()), "answer");
  EXPECT_EQ(trace.num_reasoning_tokens(), static_cast<int>(tokenizer_->Encode("think").size()) + 1);
}

// C045, C046.
TEST_F(TokenTraceTest, SpellsRawBytesAndFiniteNumbers) {
  const std::vector<TokenId> ids = tokenizer_->Encode("\xF0\x9F\x98\x80");
  ASSERT_GT(ids.size(), 1u) << "a character of several tokens";
  std::string bytes;
  for (const TokenId id : ids) {
    TracedToken token{.token = id, .logprob = -std::numeric_limits<float>::infinity(), .top = {}};
    const Json entry = ChatLogprobsJson(tokenizer_.get(), {token})[0];
    for (const Json& byte : entry["bytes"]) bytes += static_cast<char>(byte.get<int>());
    EXPECT_EQ(entry["logprob"], -9999.0);
    EXPECT_TRUE(Json::accept(DumpJson(entry)));
  }
  EXPECT_EQ(bytes, "\xF0\x9F\x98\x80");
}

}  // namespace
}  // namespace hadal
