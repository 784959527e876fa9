// The golden chat data of tests/golden/chat, read once per call.
#pragma once

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "text/chat_message.h"
#include "text/python_json.h"

namespace hadal {

inline std::string ReadGoldenFile(const std::string& name) {
  std::ifstream file(std::string(HADAL_SOURCE_DIR) + "/tests/golden/chat/" + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Json ReadGoldenJson(const std::string& name) {
  Result<Json> value = ParseJsonKeepingIntegers(ReadGoldenFile(name), name);
  EXPECT_TRUE(value.ok()) << value.status().message();
  return value.ok() ? *value : Json();
}

inline std::vector<Json> ReadGoldenLines(const std::string& name) {
  std::istringstream lines(ReadGoldenFile(name));
  std::vector<Json> values;
  for (std::string line; std::getline(lines, line);) {
    Result<Json> value = ParseJsonKeepingIntegers(line, name);
    EXPECT_TRUE(value.ok()) << value.status().message();
    if (value.ok()) values.push_back(*value);
  }
  return values;
}

inline Conversation ConversationOf(const Json& value) {
  Result<Conversation> conversation = ParseConversation(value, "test");
  EXPECT_TRUE(conversation.ok()) << conversation.status().message();
  return conversation.ok() ? *conversation : Conversation{};
}

// From JSON text.
inline Conversation ConversationOf(const char* text) {
  Result<Json> value = ParseJsonKeepingIntegers(text, "test");
  EXPECT_TRUE(value.ok()) << value.status().message();
  return ConversationOf(value.ok() ? *value : Json());
}

}  // namespace hadal
