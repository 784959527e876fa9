// The output of an engine whose model says what the test wants.
#include "engine/output_processor.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/engine/engine_harness.h"
#include "tests/support/files.h"
#include "text/chat_template.h"

namespace hadal {
namespace {

GenerationRequest Text(const std::string& prompt) {
  GenerationRequest request;
  request.input = prompt;
  return request;
}

TEST(OutputProcessor, GivesTextAndIdsUpToTheEndToken) {
  TextEngine text("The capital is Paris.");
  const CollectedChoice choice = text.Ask(Text("Where?"));
  EXPECT_EQ(choice.content, "The capital is Paris.");
  EXPECT_EQ(choice.end.finish, FinishReason::kStop);
  EXPECT_EQ(IdsOf(choice), text.engine->tokenizer()->Encode("The capital is Paris."));
  EXPECT_EQ(choice.end.usage.completion_tokens, static_cast<int>(choice.tokens.size()));
}

TEST(OutputProcessor, GoesOnBehindTheEndTokenWhenAsked) {
  TextEngine text("Yes");
  GenerationRequest request = Text("Where?");
  request.ignore_eos = true;
  request.max_tokens = 6;
  const CollectedChoice choice = text.Ask(request);
  EXPECT_EQ(choice.end.finish, FinishReason::kLength);
  EXPECT_EQ(choice.tokens.size(), 6u);
}

TEST(OutputProcessor, EndsAtAStopTokenOfTheRequest) {
  TextEngine text("one two three");
  GenerationRequest request = Text("Count");
  const std::vector<TokenId> ids = text.engine->tokenizer()->Encode("one two three");
  request.stop_tokens = {ids.back()};
  const CollectedChoice choice = text.Ask(request);
  EXPECT_EQ(choice.tokens.size(), ids.size() - 1);
  EXPECT_EQ(choice.end.finish, FinishReason::kStop);
}

TEST(OutputProcessor, EndsAtTheEndOfTurnTokenWhereThereIsOne) {
  Json file = ReadGoldenJson("../../models/tiny/tokenizer.json");
  for (Json& token : file["added_tokens"]) {
    if (token["id"] != 2) continue;
    file["model"]["vocab"].erase(token["content"].get<std::string>());
    file["model"]["vocab"]["<|EOT|>"] = 2;
    token["content"] = "<|EOT|>";
  }
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Parse(file.dump(), "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::optional<TokenId> end = tokenizer.value()->FindAddedToken("<|EOT|>");
  ASSERT_TRUE(end.has_value());
  auto fake = std::make_unique<FakeRunner>(FakeRunnerOptions{.vocab_size = 4096});
  fake->choose = Reply({TokenId{100}, *end, TokenId{101}});
  Engine engine({}, std::move(fake), std::move(tokenizer).value());
  GenerationRequest request = Text("Where?");
  const auto stream = engine.Submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(IdsOf(ReadOne(stream.value().get())), std::vector<TokenId>{{100}});
}

// C036 to C039, end to end: the cases run as the model's text, as answer or behind reasoning.
TEST(OutputProcessor, StopsAsGiven) {
  const Json cases = ReadGoldenJson("engine/stop_cases.json")["cases"];
  ASSERT_EQ(cases.size(), 10u);
  for (const Json& item : cases) {
    SCOPED_TRACE(item.dump());
    const bool is_reasoning = item.value("reasoning", false);
    std::string reply;
    for (const Json& chunk : item["chunks"]) reply += chunk.get<std::string>();
    for (const bool is_chat : {false, true}) {
      if (is_reasoning && !is_chat) continue;
      TextEngine text(reply);
      GenerationRequest request;
      request.input = std::string("Go");
      if (is_chat) request.input = AskUser("Go", is_reasoning);
      request.stop = item["stop"].get<std::vector<std::string>>();
      const CollectedChoice choice = text.Ask(request);
      EXPECT_EQ(choice.content, item["emit"].get<std::string>());
      EXPECT_EQ(choice.end.finish, FinishReason::kStop);
    }
  }
}

TEST(OutputProcessor, DropsIdsBehindAStopStringOfTheSameStep) {
  for (const int num_drafts : {0, 4}) {
    TextEngine text("one two three four five six",
                    {.num_drafts = num_drafts, .draft_error_percent = 0});
    GenerationRequest request = Text("Count");
    request.stop = {"two"};
    const CollectedChoice choice = text.Ask(request);
    EXPECT_EQ(choice.content, "one ");
    const std::string decoded = text.engine->tokenizer()->Decode(IdsOf(choice));
    EXPECT_NE(decoded.find("two"), std::string::npos);
    EXPECT_EQ(decoded.find("thr"), std::string::npos) << decoded;
  }
}

// C035: max_tokens cut a character and the server aborted.
TEST(OutputProcessor, GivesValidTextWhenALimitCutsACharacter) {
  const std::string reply = "ok \U0001F996!";
  const size_t num_tokens = TinyTokenizer()->Encode(reply).size();
  for (size_t limit = 1; limit <= num_tokens; ++limit) {
    TextEngine text(reply);
    GenerationRequest request = Text("Go");
    request.max_tokens = static_cast<int>(limit);
    const CollectedChoice choice = text.Ask(request);
    EXPECT_TRUE(IsValidUtf8(choice.content));
    EXPECT_EQ(choice.end.finish, FinishReason::kLength);
    EXPECT_EQ(choice.tokens.size(), limit);
  }
}

// C021: the limit was reached while thinking, and the answer was called complete.
TEST(OutputProcessor, CallsACutReasoningALengthLimit) {
  TextEngine text("I think about it for a while</think>Done.");
  GenerationRequest request;
  request.input = AskUser("Go", true);
  request.max_tokens = 4;
  const CollectedChoice choice = text.Ask(request);
  EXPECT_FALSE(choice.reasoning.empty());
  EXPECT_TRUE(choice.content.empty());
  EXPECT_EQ(choice.end.finish, FinishReason::kLength);
}

constexpr const char* kTwoCalls =
    "Look: <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
    "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>";

TEST(OutputProcessor, EndsWhereOneCallTooManyWouldBegin) {
  TextEngine text(kTwoCalls);
  GenerationRequest request;
  request.input = AskUser("Where?");
  request.max_tool_calls = 1;
  CollectedChoice choice = text.Ask(request);
  ASSERT_EQ(choice.tool_calls.size(), 1u);
  EXPECT_EQ(choice.tool_calls[0].arguments, "{\"a\": 1}");
  EXPECT_EQ(choice.end.finish, FinishReason::kToolCalls);

  request.max_tool_calls = 0;
  choice = text.Ask(request);
  EXPECT_TRUE(choice.tool_calls.empty());
  EXPECT_EQ(choice.content, "Look: ");
  EXPECT_EQ(choice.end.finish, FinishReason::kStop);
}

TEST(OutputProcessor, GivesAnOpeningThatWasAskedForAsPartOfTheAnswer) {
  TextEngine text("{\"city\": \"Bern\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>");
  GenerationRequest request;
  request.input = AskUser("Where?");
  const size_t length = text.engine->Submit(request).value()->head().prompt.size();
  request.opening = *ToolCallOpening(ChatLayout::kV31, "get_weather");
  const auto stream = text.engine->Submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_GT(stream.value()->head().prompt.size(), length + 2) << "the model reads it, too";
  const CollectedChoice choice = ReadOne(stream.value().get());
  ASSERT_EQ(choice.tool_calls.size(), 1u);
  EXPECT_EQ(choice.tool_calls[0].name, "get_weather");
  EXPECT_EQ(choice.tool_calls[0].arguments, "{\"city\": \"Bern\"}");
  EXPECT_EQ(choice.content, "");
  EXPECT_EQ(choice.end.finish, FinishReason::kToolCalls);
}

TEST(OutputProcessor, SaysThatToolsAreCalled) {
  TextEngine text(
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}"
      "<｜tool▁call▁end｜><｜tool▁calls▁end｜>");
  GenerationRequest request;
  request.input = AskUser("Weather?");
  const CollectedChoice choice = text.Ask(request);
  ASSERT_EQ(choice.tool_calls.size(), 1u);
  EXPECT_EQ(choice.tool_calls[0].name, "get_weather");
  EXPECT_EQ(choice.tool_calls[0].arguments, "{\"city\": \"Paris\"}");
  EXPECT_EQ(choice.end.finish, FinishReason::kToolCalls);
}

TEST(OutputProcessor, MeasuresWithTheClockItWasGiven) {
  std::atomic<int64_t> now_us{1000};
  EngineOptions options;
  options.clock = [&now_us] { return now_us.load(); };
  auto fake = std::make_unique<FakeRunner>(FakeRunnerOptions{});
  fake->before_step = [&now_us](const BatchPlan&) {
    now_us += 500;
    return Status::Ok();
  };
  Engine engine(options, std::move(fake), nullptr);
  GenerationRequest request;
  request.input = FakePrompt(5);
  request.max_tokens = 4;
  const auto stream = engine.Submit(request);
  ASSERT_TRUE(stream.ok());
  const ResponseEnd end = ReadOne(stream.value().get()).end;
  EXPECT_EQ(end.timings.queue_us, 0);
  EXPECT_EQ(end.timings.prefill_us, 500);
  EXPECT_EQ(end.timings.decode_us, 1500);
}

}  // namespace
}  // namespace hadal
