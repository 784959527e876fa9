#include "text/chat_message.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/text/golden_chat.h"

namespace hadal {
namespace {

TEST(ChatMessage, ReadsEveryField) {
  const Conversation conversation = ConversationOf(R"({
    "messages": [
      {"role": "system", "content": "S"},
      {"role": "user", "content": [{"type": "text", "text": "Say "}, {"text": "hi."}]},
      {"role": "assistant", "content": null, "reasoning_content": "R", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
        {"name": "g", "arguments": {"y": [1e3, 12345678901234567890123]}},
        {"name": "h"}]},
      {"role": "tool", "tool_call_id": "c1", "content": "1"},
      {"role": "assistant", "content": "And", "reasoning": "r", "prefix": true}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "options": {"add_generation_prompt": true, "thinking": true, "response_schema": {"type": "object"}},
    "banana": 1})");
  ASSERT_EQ(conversation.messages.size(), 5u);
  EXPECT_EQ(conversation.messages[1].content, "Say hi.");
  EXPECT_TRUE(conversation.messages[1].has_content);
  const ChatMessage& caller = conversation.messages[2];
  EXPECT_FALSE(caller.has_content);
  EXPECT_EQ(caller.reasoning_content, "R");
  ASSERT_EQ(caller.tool_calls.size(), 3u);
  EXPECT_EQ(caller.tool_calls[0].id, "c1");
  EXPECT_EQ(caller.tool_calls[0].arguments, "{\"x\":1}");
  EXPECT_EQ(caller.tool_calls[1].name, "g");
  EXPECT_EQ(caller.tool_calls[1].arguments, "{\"y\": [1000.0, 12345678901234567890123]}");
  EXPECT_EQ(caller.tool_calls[2].arguments, "{}");
  EXPECT_EQ(conversation.messages[3].tool_call_id, "c1");
  EXPECT_EQ(conversation.messages[4].reasoning_content, "r");
  EXPECT_TRUE(conversation.messages[4].is_prefix);
  EXPECT_EQ(conversation.tools.size(), 1u);
  EXPECT_TRUE(conversation.options.thinking);
  EXPECT_TRUE(conversation.options.response_schema.has_value());
}

// C016: tool results rejected because content stood before role in the JSON.
TEST(ChatMessage, DoesNotCareAboutTheOrderOfKeys) {
  const Conversation conversation = ConversationOf(
      R"({"options": {}, "messages": [{"content": "{}", "tool_call_id": "c", "role": "tool"}]})");
  EXPECT_EQ(conversation.messages[0].role, "tool");
  EXPECT_EQ(conversation.messages[0].content, "{}");
}

TEST(ChatMessage, TakesTheTemplatesDefaultsWhereOptionsAreWrittenDown) {
  const char* without = R"({"messages": [{"role": "user", "content": "x"}]})";
  EXPECT_TRUE(ConversationOf(without).options.add_generation_prompt);
  const char* with = R"({"messages": [{"role": "user", "content": "x"}], "options": {}})";
  EXPECT_FALSE(ConversationOf(with).options.add_generation_prompt);
  EXPECT_FALSE(ConversationOf(with).options.thinking);
}

void ExpectRefused(std::string_view text, const std::string& message) {
  const Result<Json> value = ParseJsonKeepingIntegers(text, "test");
  ASSERT_TRUE(value.ok()) << value.status().message();
  const Result<Conversation> conversation = ParseConversation(*value, "line 3");
  ASSERT_FALSE(conversation.ok()) << text;
  EXPECT_EQ(conversation.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(conversation.status().message(), message);
}

TEST(ChatMessage, NamesThePathOfAFault) {
  ExpectRefused("[]", "line 3: expected an object, found an empty list");
  ExpectRefused("{}", "line 3: messages: expected a list of at least one message, found nothing");
  ExpectRefused(R"({"messages": []})",
                "line 3: messages: expected a list of at least one message, found an empty list");
  ExpectRefused(R"({"messages": ["x\n"]})",
                "line 3: messages[0]: expected an object, found the text \"x\\x0A\"");
  ExpectRefused(R"({"messages": [{"content": "x"}]})",
                "line 3: messages[0].role: expected a string, found nothing");
  ExpectRefused(R"({"messages": [{"role": "user", "content": 3}]})",
                "line 3: messages[0].content: expected a string, null or a list of text parts, "
                "found a number");
  ExpectRefused(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
                "line 3: messages[0].content[0].type: expected \"text\", found the text "
                "\"image_url\"");
  ExpectRefused(
      R"({"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]})",
      "line 3: messages[0].tool_calls[0].function.name: expected a string, found nothing");
  ExpectRefused(R"({"messages": [{"role": "assistant", "tool_calls": [{"name": "f",
                    "arguments": 1}]}]})",
                "line 3: messages[0].tool_calls[0].arguments: expected JSON text, found a number");
  ExpectRefused(R"({"messages": [{"role": "assistant", "tool_calls": {}}]})",
                "line 3: messages[0].tool_calls: expected a list, found an object");
  ExpectRefused(R"({"messages": [{"role": "user", "prefix": true}]})",
                "line 3: messages[0].prefix: expected it only on a last assistant message without "
                "tool calls, found it on message 1 of 1 with role \"user\"");
  ExpectRefused(R"({"messages": [{"role": "user", "content": "x"}], "tools": "x"})",
                "line 3: tools: expected a list, found the text \"x\"");
  ExpectRefused(R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"name": "f"}]})",
                "line 3: tools[0].function: expected an object, found nothing");
  ExpectRefused(R"({"messages": [{"role": "user", "content": "x"}], "options": {"thinking": 1}})",
                "line 3: options.thinking: expected true or false, found a number");
}

}  // namespace
}  // namespace hadal
