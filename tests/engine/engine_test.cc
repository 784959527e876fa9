#include "engine/engine.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/engine/engine_harness.h"

namespace hadal {
namespace {

GenerationRequest Ids(int num_prompt_tokens, int max_tokens, uint64_t prompt_seed = 0) {
  GenerationRequest request;
  request.input = FakePrompt(num_prompt_tokens, prompt_seed);
  request.max_tokens = max_tokens;
  return request;
}

TEST(Engine, AnswersWithIdsWithoutATokenizer) {
  IdEngine id_engine;
  const auto stream = id_engine.engine->Submit(Ids(6, 9));
  ASSERT_TRUE(stream.ok());
  EXPECT_FALSE(stream.value()->head().has_text);
  const CollectedChoice choice = ReadOne(stream.value().get());
  EXPECT_EQ(IdsOf(choice), id_engine.runner->Expected(FakePrompt(6), {}, 9, {}));
  EXPECT_TRUE(choice.content.empty());
  EXPECT_EQ(choice.end.finish, FinishReason::kLength);
}

TEST(Engine, RefusesTextWithoutATokenizer) {
  IdEngine id_engine;
  GenerationRequest request;
  request.input = std::string("hello");
  EXPECT_EQ(id_engine.engine->Submit(request).status().code(), StatusCode::kUnsupported);
  request.input = AskUser("hello");
  EXPECT_EQ(id_engine.engine->Submit(request).status().code(), StatusCode::kUnsupported);
}

// C006: the prompt started with two begin marks.
TEST(Engine, PutsExactlyOneBeginTokenInFront) {
  TextEngine text("ok");
  GenerationRequest chat, with_mark, without_mark, with_two;
  chat.input = AskUser("hello");
  with_mark.input = std::string("<｜begin▁of▁sentence｜>hello");
  without_mark.input = std::string("hello");
  with_two.input = std::string("<｜begin▁of▁sentence｜><｜begin▁of▁sentence｜>hello");
  for (const GenerationRequest& request : {chat, with_mark, without_mark, with_two}) {
    const auto stream = text.engine->Submit(request);
    ASSERT_TRUE(stream.ok());
    const std::vector<TokenId>& prompt = stream.value()->head().prompt;
    EXPECT_EQ(prompt[0], kTinyBos);
    EXPECT_EQ(std::ranges::count(prompt, kTinyBos), 1);
    const ResponseEnd end = ReadOne(stream.value().get()).end;
    EXPECT_EQ(end.usage.prompt_tokens, static_cast<int>(prompt.size()));
  }
}

TEST(Engine, ContinuesAnEmptyTextFromTheBeginToken) {
  TextEngine text("ok");
  GenerationRequest request;
  request.input = std::string();
  const auto stream = text.engine->Submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(stream.value()->head().prompt, std::vector<TokenId>{kTinyBos});
  EXPECT_EQ(ReadOne(stream.value().get()).content, "ok");
}

// C048: a prompt that was too long gave an empty answer, or lost its front.
TEST(Engine, RefusesALongPromptBeforeAnyOutputWithBothNumbers) {
  IdEngine id_engine({.max_context_tokens = 32});
  const Status status = id_engine.engine->Submit(Ids(33, -1)).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("33"), std::string::npos);
  EXPECT_NE(status.message().find("32"), std::string::npos);
}

// C112, C117: an empty prompt hung the server; -1 as an id killed it.
TEST(Engine, RefusesEmptyPromptsAndIdsThatDoNotExist) {
  IdEngine id_engine;
  for (const int bad : {-1, 100, INT32_MAX}) {
    GenerationRequest request;
    request.input = std::vector<TokenId>{{5}, {bad}};
    const Status status = id_engine.engine->Submit(request).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(status.message().starts_with("prompt[1]:")) << status.message();
  }
  EXPECT_EQ(id_engine.engine->Submit({}).status().code(), StatusCode::kInvalidArgument);
  const auto good = id_engine.engine->Submit(Ids(4, 2));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(ReadOne(good.value().get()).tokens.size(), 2u);
}

// C043: more tokens were reported as cached than the prompt has.
TEST(Engine, CountsCachedTokensOfTheSecondAskingOnly) {
  IdEngine id_engine({.max_context_tokens = 1100, .num_cache_blocks = 600});
  const auto first = id_engine.engine->Submit(Ids(1000, 2));
  EXPECT_EQ(ReadOne(first.value().get()).end.usage.cached_tokens, 0);
  const auto second = id_engine.engine->Submit(Ids(1000, 2));
  EXPECT_EQ(ReadOne(second.value().get()).end.usage.cached_tokens, 996);
}

TEST(Engine, SharesNothingAcrossSalts) {
  IdEngine id_engine;
  for (const char* salt : {"a", "b", ""}) {
    GenerationRequest request = Ids(40, 2);
    request.cache_salt = salt;
    const auto stream = id_engine.engine->Submit(request);
    EXPECT_EQ(ReadOne(stream.value().get()).end.usage.cached_tokens, 0) << salt;
  }
}

TEST(Engine, GivesEachChoiceItsOwnDrawsAndOnePrompt) {
  IdEngine id_engine;
  GenerationRequest request = Ids(40, 12);
  request.num_choices = 3;
  request.seed = 5;
  request.sampling.temperature = 1.0f;
  std::vector<std::vector<TokenId>> before;
  for (int round = 0; round < 2; ++round) {
    const auto stream = id_engine.engine->Submit(request);
    ASSERT_TRUE(stream.ok());
    ResponseCollector collector(3);
    collector.ReadAll(stream.value().get());
    std::vector<std::vector<TokenId>> answers;
    for (const CollectedChoice& choice : collector.choices()) answers.push_back(IdsOf(choice));
    EXPECT_NE(answers[0], answers[1]);
    EXPECT_NE(answers[1], answers[2]);
    EXPECT_EQ(collector.choices()[1].end.usage.cached_tokens, 36);
    if (round == 1) {
      EXPECT_EQ(answers, before);
    }
    before = answers;
  }
}

// C052: a seed had no effect when another request of the batch had none.
TEST(Engine, DrawsTheSameForASeedWhateverRunsBesideIt) {
  IdEngine id_engine;
  GenerationRequest seeded = Ids(8, 20, 1), other = Ids(8, 20, 2);
  seeded.seed = 42;
  seeded.sampling.temperature = other.sampling.temperature = 0.8f;
  const auto alone = id_engine.engine->Submit(seeded);
  const std::vector<TokenId> expected = IdsOf(ReadOne(alone.value().get()));
  for (int round = 0; round < 10; ++round) {
    other.seed = round % 2 == 0 ? std::optional<uint64_t>(7) : std::nullopt;
    const auto beside = id_engine.engine->Submit(other);
    const auto again = id_engine.engine->Submit(seeded);
    EXPECT_EQ(IdsOf(ReadOne(again.value().get())), expected);
    ReadOne(beside.value().get());
  }
}

TEST(Engine, DrawsAndReportsASeedWhenNoneIsGiven) {
  IdEngine id_engine;
  GenerationRequest request = Ids(8, 20);
  request.sampling.temperature = 1.0f;
  const auto first = id_engine.engine->Submit(request);
  const auto second = id_engine.engine->Submit(request);
  EXPECT_NE(first.value()->head().seed, second.value()->head().seed);
  const std::vector<TokenId> drawn = IdsOf(ReadOne(first.value().get()));
  request.seed = first.value()->head().seed;
  const auto again = id_engine.engine->Submit(request);
  EXPECT_EQ(IdsOf(ReadOne(again.value().get())), drawn);
}

TEST(Engine, RefusesMoreThanItMayHold) {
  FakeRunnerOptions options;
  EngineOptions engine_options = OptionsFor(options);
  engine_options.max_pending_sequences = 3;
  IdEngine id_engine(options, engine_options);
  GenerationRequest request = Ids(8, 5);
  request.num_choices = 4;
  EXPECT_EQ(id_engine.engine->Submit(request).status().code(), StatusCode::kResourceExhausted);
  request.num_choices = 3;
  const auto stream = id_engine.engine->Submit(request);
  ASSERT_TRUE(stream.ok());
  ReadOne(stream.value().get());
  EXPECT_TRUE(id_engine.engine->Submit(request).ok());
}

TEST(Engine, CountsWhatItDid) {
  IdEngine id_engine;
  for (int i = 0; i < 2; ++i) {
    const auto stream = id_engine.engine->Submit(Ids(8, 5));
    ReadOne(stream.value().get());
  }
  const MetricsSnapshot metrics = id_engine.engine->metrics();
  EXPECT_EQ(metrics.num_submitted, 2);
  EXPECT_EQ(metrics.num_cut, 2);
  EXPECT_EQ(metrics.num_prompt_tokens, 16);
  EXPECT_EQ(metrics.num_cached_tokens, 4);
  EXPECT_EQ(metrics.num_generated_tokens, 10);
  EXPECT_GE(metrics.num_steps, 9);
}

TEST(Engine, LetsTheRunnerDrawOnlyIdsThatHaveTokens) {
  TextEngine text("ok");
  text.runner->choose = nullptr;
  GenerationRequest request;
  request.input = std::string("go");
  request.ignore_eos = true;
  request.max_tokens = 50;
  for (const TokenId id : IdsOf(text.Ask(request)))
    EXPECT_LT(id.value, text.engine->tokenizer()->vocab_size());
}

}  // namespace
}  // namespace hadal
