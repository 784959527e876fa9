#include "engine/answer_constraint.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"
#include "tests/engine/engine_harness.h"

namespace hadal {
namespace {

bool Allows(AnswerConstraint* constraint, TokenId token) {
  const std::span<const uint64_t> allowed = constraint->Allowed();
  if (allowed.empty()) return true;
  return (allowed[static_cast<size_t>(token.value) / 64] >> (token.value % 64) & 1) != 0;
}

class AnswerConstraintTest : public testing::Test {
 protected:
  AnswerConstraint Make(AnswerRules rules) {
    rules.end_tokens = {kTinyEos};
    return AnswerConstraint(tokenizer_.get(), tokenizer_->vocab_size(), std::move(rules));
  }
  TokenId Token(std::string_view text) { return tokenizer_->EncodeWithSpecials(text).at(0); }
  // Feeds the text; the first token that is not allowed, or an empty text.
  std::string FirstRefused(AnswerConstraint* constraint, std::string_view text) {
    for (const TokenId token : tokenizer_->EncodeWithSpecials(text)) {
      if (!Allows(constraint, token)) return std::string(tokenizer_->TokenBytes(token));
      constraint->Accept(token);
    }
    return {};
  }

  std::unique_ptr<Tokenizer> tokenizer_ = TinyTokenizer();
};

TEST_F(AnswerConstraintTest, ClosesReasoningAtItsBudgetAndNotBefore) {
  AnswerConstraint constraint =
      Make({.max_reasoning_tokens = 3, .starts_in_reasoning = true, .end_tokens = {}});
  const TokenId word = Token("word"), close = Token("</think>");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Allows(&constraint, word));
    constraint.Accept(word);
  }
  EXPECT_FALSE(Allows(&constraint, word));
  EXPECT_TRUE(Allows(&constraint, close));
  constraint.Accept(close);
  EXPECT_TRUE(Allows(&constraint, word)) << "the answer is free";
}

TEST_F(AnswerConstraintTest, HoldsAnAnswerToOneJsonObject) {
  AnswerConstraint constraint = Make({.is_json = true, .end_tokens = {}});
  EXPECT_FALSE(Allows(&constraint, Token("The")));
  EXPECT_FALSE(Allows(&constraint, kTinyEos));
  EXPECT_EQ(FirstRefused(&constraint, "{\"name\": \"Kira\", \"age\": 40}"), "");
  EXPECT_TRUE(Allows(&constraint, kTinyEos));
  EXPECT_FALSE(Allows(&constraint, Token(" and")));
}

// Their spelling would fit into a string.
TEST_F(AnswerConstraintTest, AllowsNoControlTokenInsideAString) {
  AnswerConstraint constraint = Make({.is_json = true, .end_tokens = {}});
  ASSERT_EQ(FirstRefused(&constraint, "{\"name\": \"Ki"), "");
  EXPECT_FALSE(Allows(&constraint, Token("<｜User｜>")));
  EXPECT_TRUE(Allows(&constraint, Token("ra")));
}

TEST_F(AnswerConstraintTest, BeginsJsonBehindTheReasoning) {
  AnswerConstraint constraint =
      Make({.is_json = true, .starts_in_reasoning = true, .end_tokens = {}});
  ASSERT_EQ(FirstRefused(&constraint, "The user wants { nothing.</think>"), "");
  EXPECT_FALSE(Allows(&constraint, Token("The")));
  EXPECT_EQ(FirstRefused(&constraint, "{\"a\": 1}"), "");
}

TEST_F(AnswerConstraintTest, LetsToolsBeCalledInsteadOfJson) {
  AnswerConstraint without = Make({.is_json = true, .end_tokens = {}});
  const TokenId calls = Token("<｜tool▁calls▁begin｜>");
  EXPECT_FALSE(Allows(&without, calls));
  AnswerConstraint with = Make({.is_json = true, .may_call_tools = true, .end_tokens = {}});
  EXPECT_EQ(FirstRefused(&with, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}"),
            "");
  AnswerConstraint later = Make({.is_json = true, .may_call_tools = true, .end_tokens = {}});
  ASSERT_EQ(FirstRefused(&later, "{"), "");
  EXPECT_FALSE(Allows(&later, calls));
}

// The whole way: a model that says anything is made to say JSON by the masks of its steps.
TEST(AnswerConstraintInEngine, MakesAnyModelSayJson) {
  TextEngine text("unused");
  std::vector<uint64_t> masks;
  text.runner->before_step = [&masks](const BatchPlan& plan) {
    masks = plan.masks;
    return Status::Ok();
  };
  uint64_t seed = 0;
  text.runner->choose = [&](const FakePrefix& prefix) {
    for (uint64_t id = RandomBits(seed, prefix.tokens.size());; ++id) {
      const size_t bit = id % 4096;
      if (masks.empty() || (masks[bit / 64] >> (bit % 64) & 1) != 0)
        return TokenId{static_cast<int32_t>(bit)};
    }
  };
  GenerationRequest request;
  request.input = AskUser("Tell me a story.");
  request.is_json = true;
  request.max_tool_calls = 0;
  request.max_tokens = 100;
  int num_whole = 0;
  for (seed = 0; seed < 20; ++seed) {
    const CollectedChoice choice = text.Ask(request);
    ASSERT_EQ(choice.content.substr(0, 1), "{") << choice.content;
    if (choice.end.finish != FinishReason::kStop) continue;
    ++num_whole;
    EXPECT_TRUE(Json::accept(choice.content)) << choice.content;
  }
  EXPECT_GT(num_whole, 0);
}

TEST(AnswerConstraintInEngine, LeavesOthersOfTheStepFree) {
  TextEngine text("{\"a\": 1}");
  GenerationRequest json, plain;
  json.input = plain.input = AskUser("Hello");
  json.is_json = true;
  int num_masked = 0, num_free = 0;
  text.runner->before_step = [&](const BatchPlan& plan) {
    for (const SequenceSlice& slice : plan.slices) {
      if (!slice.wants_tokens) continue;
      (slice.num_mask_words > 0 ? num_masked : num_free) += 1;
    }
    return Status::Ok();
  };
  const auto first = text.engine->Submit(json), second = text.engine->Submit(plain);
  ASSERT_TRUE(first.ok() && second.ok());
  const CollectedChoice masked = ReadOne(first.value().get()), free = ReadOne(second.value().get());
  EXPECT_EQ(masked.content, free.content);
  EXPECT_EQ(num_masked, num_free);
}

}  // namespace
}  // namespace hadal
