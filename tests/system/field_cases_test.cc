// What went wrong in other engines and takes a whole engine with a real model to show.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/golden_model.h"
#include "tests/system/open_engine.h"

namespace hadal {
namespace {

std::string TinyPath() { return std::string(HADAL_SOURCE_DIR) + "/models/tiny"; }

GenerationRequest Greedy(std::vector<TokenId> prompt, int max_tokens) {
  GenerationRequest request;
  request.input = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  request.sampling.num_logprobs = 3;
  return request;
}

// C033: the model stopped ending its turns after some tool rounds. Rounds of one conversation, each
// of which finds the earlier ones in the cache, against the same prompts on an engine that has seen
// nothing.
TEST(FieldCases, ThirdToolRoundEqualsAColdRun) {
  Conversation conversation;
  conversation.tools.push_back(Json::parse(R"({"type": "function", "function": {
      "name": "get_weather", "description": "The weather.", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}}, "required": ["city"]}}})"));
  ChatMessage user;
  user.role = "user";
  user.content = "What is the weather in Paris, in Rome and in Oslo?";
  conversation.messages.push_back(user);
  const std::unique_ptr<Engine> warm = OpenEngine({.model_path = TinyPath(), .num_threads = 2});
  ASSERT_NE(warm, nullptr);
  for (int round = 1; round <= 3; ++round) {
    GenerationRequest request = Greedy({}, 24);
    request.input = conversation;
    request.ignore_eos = false;
    const std::unique_ptr<Engine> cold = OpenEngine({.model_path = TinyPath(), .num_threads = 2});
    ASSERT_NE(cold, nullptr);
    const Answer expected = AskAlone(cold.get(), request);
    const Answer found = AskAlone(warm.get(), request);
    EXPECT_TRUE(found == expected) << "round " << round;
    EXPECT_EQ(expected.cached_tokens, 0);
    if (round > 1) {
      EXPECT_GT(found.cached_tokens, 0) << "nothing was reused, so nothing is shown";
    }

    ChatMessage call;
    call.role = "assistant";
    call.tool_calls.push_back({"", "get_weather", R"({"city": "Paris"})"});
    ChatMessage result;
    result.role = "tool";
    result.content = "Sunny, " + std::to_string(20 + round) + " degrees.";
    conversation.messages.push_back(call);
    conversation.messages.push_back(result);
  }
}

// C065 and C095: requests that together outgrow the cache ended the process, or came out wrong
// after one of them had been put off.
TEST(FieldCases, RequestsThatTogetherOutgrowTheCacheGiveTheirOwnAnswers) {
  const RunnerOptions roomy = {.model_path = GoldenModelPath("v3-f32"), .num_threads = 2};
  RunnerOptions tight = roomy;
  tight.cache_tokens = 384;  // one and a half of the requests below
  std::vector<GenerationRequest> requests;
  for (int r = 0; r < 3; ++r) {
    std::vector<TokenId> prompt;
    for (int i = 0; i < 50; ++i) prompt.push_back({(7 * i + 31 * r) % 90});
    requests.push_back(Greedy(prompt, 200));
  }
  const std::unique_ptr<Engine> engine = OpenEngine(tight);
  ASSERT_NE(engine, nullptr);
  const std::vector<Answer> together = AskTogether(engine.get(), requests);
  ASSERT_EQ(together.size(), requests.size());
  for (size_t r = 0; r < requests.size(); ++r) {
    const std::unique_ptr<Engine> alone = OpenEngine(roomy);
    ASSERT_NE(alone, nullptr);
    EXPECT_TRUE(together[r] == AskAlone(alone.get(), requests[r])) << "request " << r;
    EXPECT_EQ(together[r].ids.size(), 200u);
    EXPECT_EQ(together[r].finish, FinishReason::kLength);
  }
}

// C100: one request alone gave other logprobs and other text from run to run.
TEST(FieldCases, TenRunsOfOneRequestGiveTheSameBits) {
  GenerationRequest request = Greedy({{1}, {5}, {9}, {2}, {6}}, 100);
  const std::unique_ptr<Engine> engine =
      OpenEngine({.model_path = GoldenModelPath("v3-fp8"), .num_threads = 0});
  ASSERT_NE(engine, nullptr);
  const Answer first = AskAlone(engine.get(), request);
  EXPECT_EQ(first.ids.size(), 100u);
  for (int run = 1; run < 10; ++run) {
    request.cache_salt = std::to_string(run);  // nothing of the earlier runs may be reused
    const Answer again = AskAlone(engine.get(), request);
    EXPECT_EQ(again.cached_tokens, 0);
    EXPECT_TRUE(again == first) << "run " << run;
  }
}

}  // namespace
}  // namespace hadal
