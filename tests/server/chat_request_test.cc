#include "server/chat_request.h"

#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "server/messages_request.h"
#include "server/responses_request.h"
#include "server/routes.h"
#include "text/chat_template.h"
#include "text/python_json.h"

namespace hadal {
namespace {

ApiModel Model(ChatLayout layout = ChatLayout::kV31) {
  ApiModel model;
  model.names = {"tiny"};
  model.layout = layout;
  model.num_tokens = 100;
  model.max_context_tokens = 64;
  return model;
}

Json Body(std::string_view text) {
  const Result<Json> body = ParseJsonKeepingIntegers(text, "body");
  HADAL_CHECK(body.ok());
  return body.value();
}

GenerationRequest Parsed(std::string_view text, ChatLayout layout = ChatLayout::kV31) {
  const Result<ApiCall> call = ParseChatRequest(Body(text), Model(layout));
  EXPECT_TRUE(call.ok()) << call.status().message();
  return call.ok() ? call->requests[0] : GenerationRequest();
}

std::string Refused(std::string_view text, ChatLayout layout = ChatLayout::kV31) {
  const Result<ApiCall> call = ParseChatRequest(Body(text), Model(layout));
  return call.ok() ? "" : call.status().message();
}

const Conversation& Talk(const GenerationRequest& request) {
  return std::get<Conversation>(request.input);
}

constexpr const char* kTool =
    R"({"type": "function", "function": {"name": "f", "parameters": {"max": 123456789012345678901234567890}}})";

std::string WithTools(const std::string& more) {
  return R"({"messages": [{"role": "user", "content": "x"}], "tools": [)" + std::string(kTool) +
         "]" + more + "}";
}

// C016: results were rejected because content stood before role.
TEST(ChatRequest, DoesNotMindTheOrderOfFields) {
  const GenerationRequest request =
      Parsed(R"({"messages": [{"content": "x", "role": "user"}], "max_tokens": 5})");
  EXPECT_EQ(Talk(request).messages[0].content, "x");
  EXPECT_EQ(request.max_tokens, 5);
}

TEST(ChatRequest, TakesDevelopersForSystemMessages) {
  const GenerationRequest request = Parsed(
      R"({"messages": [{"role": "developer", "content": "a"}, {"role": "user", "content": "b"}]})");
  EXPECT_EQ(Talk(request).messages[0].role, "system");
}

TEST(ChatRequest, KeepsIntegersOfSchemasToTheDigit) {
  const Conversation talk = Talk(Parsed(WithTools("")));
  EXPECT_NE(DumpPythonJson(talk.tools[0]).find("123456789012345678901234567890"),
            std::string::npos);
}

TEST(ChatRequest, SaysWhoGuessesAheadAndHowFar) {
  const std::string begin = R"({"messages": [{"role": "user", "content": "x"}])";
  EXPECT_FALSE(Parsed(begin + "}").speculation.has_value()) << "then the server's own counts";
  const auto asked =
      Parsed(begin + R"(, "speculation": {"drafter": "ngram", "tokens": 5}})").speculation;
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->drafter, DrafterKind::kNgram);
  EXPECT_EQ(asked->max_drafts, 5);
  EXPECT_NE(
      Refused(begin + R"(, "speculation": {"drafter": "trees"}})").find("speculation.drafter"),
      std::string::npos);
  EXPECT_NE(Refused(begin + R"(, "speculation": {"tokens": 99}})").find("speculation.tokens"),
            std::string::npos);
}

TEST(ChatRequest, ClampsALimitBeyondAnyContext) {
  EXPECT_GT(Parsed(R"({"messages": [{"role": "user", "content": "x"}],
                       "max_tokens": 9007199254740992})")
                .max_tokens,
            1 << 30);
}

TEST(ChatRequest, OpensACallThatMustCome) {
  EXPECT_EQ(PromptText(Parsed(WithTools(R"(, "tool_choice": "required")")).opening),
            PromptText(*ToolCallOpening(ChatLayout::kV31, "f")));
  EXPECT_TRUE(Parsed(WithTools("")).opening.empty());
  EXPECT_EQ(Parsed(WithTools(R"(, "parallel_tool_calls": false)")).max_tool_calls, 1);
  const GenerationRequest none = Parsed(WithTools(R"(, "tool_choice": "none")"));
  EXPECT_TRUE(Talk(none).tools.empty());
  EXPECT_EQ(none.max_tool_calls, 0);
}

TEST(ChatRequest, ShortensTheListToTheAllowedTools) {
  const std::string allowed =
      R"(, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required",
         "tools": [{"type": "function", "function": {"name": "f"}}]}})";
  EXPECT_EQ(Talk(Parsed(WithTools(allowed))).tools.size(), 1u);
  EXPECT_FALSE(Parsed(WithTools(allowed)).opening.empty());
}

TEST(ChatRequest, RefusesWhatTheLayoutCannotDo) {
  EXPECT_TRUE(Refused(WithTools(""), ChatLayout::kR1).starts_with("tools: "));
  const std::string talk = R"({"messages": [{"role": "user", "content": "x"}])";
  EXPECT_TRUE(Refused(talk + R"(, "thinking": {"type": "enabled"}})", ChatLayout::kV3)
                  .starts_with("thinking: "));
  EXPECT_TRUE(Refused(talk + R"(, "reasoning_effort": "none"})", ChatLayout::kR1)
                  .starts_with("reasoning_effort: "));
  EXPECT_EQ(Refused(talk + R"(, "reasoning_effort": "low"})", ChatLayout::kR1), "");
  EXPECT_EQ(Parsed(talk + R"(, "reasoning_effort": "low"})", ChatLayout::kR1).max_reasoning_tokens,
            2048);
}

TEST(ChatRequest, BringsResultsIntoTheOrderOfTheirCalls) {
  const std::string turns = R"({"messages": [{"role": "user", "content": "x"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "b", "content": "second"},
      {"role": "tool", "tool_call_id": "a", "content": "first"}]})";
  const Conversation talk = Talk(Parsed(turns));
  EXPECT_EQ(talk.messages[2].content, "first");
  EXPECT_EQ(talk.messages[3].content, "second");
}

TEST(ChatRequest, TakesTheNamesItWasGiven) {
  ApiModel model = Model();
  model.checks_names = true;
  const std::string talk = R"({"messages": [{"role": "user", "content": "x"}])";
  EXPECT_TRUE(ParseChatRequest(Body(talk + R"(, "model": "tiny"})"), model).ok());
  EXPECT_EQ(ParseChatRequest(Body(talk + R"(, "model": "other"})"), model).status().code(),
            StatusCode::kNotFound);
  EXPECT_FALSE(ParseChatRequest(Body(talk + "}"), model).ok());
  EXPECT_EQ(ParseChatRequest(Body(talk + R"(, "model": "other"})"), Model())->model, "other");
}

TEST(MessagesRequest, PutsResultsBeforeWhatTheUserSaysBesideThem) {
  const Result<ApiCall> call = ParseMessagesRequest(Body(R"({"max_tokens": 5, "messages": [
      {"role": "user", "content": "x"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"b": 1}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": true,
        "content": [{"type": "text", "text": "broke"}]}, {"type": "text", "text": "and?"}]}]})"),
                                                    Model());
  ASSERT_TRUE(call.ok()) << call.status().message();
  const std::vector<ChatMessage>& messages = Talk(call->requests[0]).messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[1].reasoning_content, "hm");
  EXPECT_EQ(messages[1].tool_calls[0].arguments, "{\"b\": 1}");
  EXPECT_EQ(messages[2].content, "Error: broke");
  EXPECT_EQ(messages[3].content, "and?");
}

TEST(ResponsesRequest, JoinsTheItemsOfOneTurn) {
  const Result<ApiCall> call = ParseResponsesRequest(Body(R"({"instructions": "s", "input": [
      {"role": "user", "content": "x"},
      {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I call"}]},
      {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "a", "output": "1"}]})"),
                                                     Model());
  ASSERT_TRUE(call.ok()) << call.status().message();
  const std::vector<ChatMessage>& messages = Talk(call->requests[0]).messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2].reasoning_content, "hm");
  EXPECT_EQ(messages[2].content, "I call");
  EXPECT_EQ(messages[2].tool_calls.size(), 1u);
  EXPECT_EQ(messages[3].role, "tool");
}

TEST(Routes, KnowsPathsWithAndWithoutTheirPrefixes) {
  for (const char* path : {"/v1/chat/completions", "/chat/completions", "/beta/chat/completions",
                           "/beta/v1/chat/completions", "/v1/chat/completions/"}) {
    std::string_view allowed;
    const Route* route = FindRoute("POST", path, &allowed);
    ASSERT_NE(route, nullptr) << path;
    EXPECT_EQ(route->name, "chat");
    EXPECT_EQ(FindRoute("DELETE", path, &allowed), nullptr);
    EXPECT_EQ(allowed, "POST");
  }
  std::string_view allowed;
  EXPECT_EQ(FindRoute("POST", "/v1v1/chat/completions", &allowed), nullptr);
  EXPECT_EQ(allowed, "");
}

}  // namespace
}  // namespace hadal
