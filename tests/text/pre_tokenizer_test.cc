#include "text/pre_tokenizer.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

using testing::ElementsAre;
using Pieces = std::vector<std::string>;

Pieces Split(PreTokenizerFamily family, std::string_view text) {
  std::vector<size_t> ends;
  PreTokenizer(family).Split(text, &ends);
  Pieces pieces;
  size_t begin = 0;
  for (const size_t end : ends) {
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

Pieces SplitV3(std::string_view text) { return Split(PreTokenizerFamily::kDeepSeekV3, text); }
Pieces SplitLlm(std::string_view text) { return Split(PreTokenizerFamily::kDeepSeekLlm, text); }

void ExpectExamples(PreTokenizerFamily family, std::string_view key) {
  const auto text = ReadFile(HADAL_SOURCE_DIR "/tests/golden/text/spec_examples.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const Json examples = ParseJson(text.value(), "spec_examples.json").value().at(std::string(key));
  ASSERT_GE(examples.size(), 12u);
  for (const Json& example : examples) {
    const auto line = example.at("text").get<std::string>();
    EXPECT_EQ(Split(family, line), example.at("pieces").get<Pieces>()) << line;
  }
}

TEST(PreTokenizer, CutsTheV3ExamplesOfTheSpecification) {
  ExpectExamples(PreTokenizerFamily::kDeepSeekV3, "pretok_v3");
}

TEST(PreTokenizer, CutsTheV2ExamplesOfTheSpecification) {
  ExpectExamples(PreTokenizerFamily::kDeepSeekLlm, "pretok_v2");
}

TEST(PreTokenizer, GroupsDigitsByThreeInV3AndByOneInV2) {
  EXPECT_THAT(SplitV3("12345678901"), ElementsAre("123", "456", "789", "01"));
  EXPECT_THAT(SplitLlm("123"), ElementsAre("1", "2", "3"));
}

}  // namespace
}  // namespace hadal
