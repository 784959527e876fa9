#include "text/volatile_lines.h"

#include <string>

#include <gtest/gtest.h>

namespace hadal {
namespace {

Conversation Chat(const std::string& system, const std::string& user) {
  Conversation conversation;
  for (const auto& [role, content] : {std::pair("system", system), std::pair("user", user)}) {
    ChatMessage& message = conversation.messages.emplace_back();
    message.role = role;
    message.content = content;
  }
  return conversation;
}

TEST(VolatileLines, KnowsDatesTimesAndIds) {
  for (const std::string line :
       {"Today's date: 2025-11-30", "Current date: November 30, 2025", "It is 30 Nov 2025.",
        "<time>12:34:56</time>", "now=2025-11-30T12:34Z", "am 30.11.2025",
        "Session: 3f2504e0-4f89-41d3-9a0c-0305e82c3301", "commit 9fb21c651e98df25aa03d9c4e5f6a7b8"})
    EXPECT_TRUE(IsVolatileLine(line)) << line;
}

TEST(VolatileLines, LeavesOrdinaryLinesAlone) {
  for (const std::string line :
       {"You are a helpful assistant.", "Use at most 80 columns, version 1.2.3.",
        "May I ask in 12 words?", "port 8080:80 is open", "ratio 1:2", "deadbeef is a word",
        "In March we", "Copyright 2025", "abcdefabcdefabcdefabcdefabcdef", ""})
    EXPECT_FALSE(IsVolatileLine(line)) << line;
  EXPECT_FALSE(IsVolatileLine(std::string(300, 'a') + " 2025-11-30"));
}

TEST(VolatileLines, MovesThemBehindTheSystemPrompt) {
  Conversation chat = Chat("You are an agent.\nDate: 2025-11-30\nBe brief.", "Hello");
  StabilizePrompt(VolatileLines::kMove, &chat);
  EXPECT_EQ(chat.messages[0].content, "You are an agent.\nBe brief.");
  EXPECT_EQ(chat.messages[1].content, "Date: 2025-11-30\n\nHello");
}

TEST(VolatileLines, GivesTheSameSystemPromptOnAnotherDay) {
  Conversation today = Chat("Date: 2025-11-30\nYou are an agent.", "Hello");
  Conversation tomorrow = Chat("Date: 2025-12-01\nYou are an agent.", "Hello");
  StabilizePrompt(VolatileLines::kMove, &today);
  StabilizePrompt(VolatileLines::kMove, &tomorrow);
  EXPECT_EQ(today.messages[0].content, tomorrow.messages[0].content);
}

TEST(VolatileLines, DropsThemWhenAsked) {
  Conversation chat = Chat("Date: 2025-11-30\nBe brief.\n", "Hello");
  StabilizePrompt(VolatileLines::kDrop, &chat);
  EXPECT_EQ(chat.messages[0].content, "Be brief.\n");
  EXPECT_EQ(chat.messages[1].content, "Hello");
}

TEST(VolatileLines, ChangesNothingElse) {
  const std::string stable = "Be brief.\n\nReally.\n";
  Conversation chat = Chat(stable, "It is 12:30 now");
  for (const VolatileLines mode :
       {VolatileLines::kKeep, VolatileLines::kMove, VolatileLines::kDrop}) {
    StabilizePrompt(mode, &chat);
    EXPECT_EQ(chat.messages[0].content, stable);
    EXPECT_EQ(chat.messages[1].content, "It is 12:30 now");
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += i == 50 ? "born 1999-01-02\n" : "text\n";
  chat = Chat(deep, "Hello");
  StabilizePrompt(VolatileLines::kMove, &chat);
  EXPECT_EQ(chat.messages[0].content, deep) << "prose in the middle is left alone";
  chat = Chat("Date: 2025-11-30", "");
  StabilizePrompt(VolatileLines::kMove, &chat);
  EXPECT_EQ(chat.messages[0].content, "Date: 2025-11-30") << "there is no place to move it to";
}

}  // namespace
}  // namespace hadal
