#include "evaluate/choice_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::HasSubstr;

constexpr const char* kLines =
    R"({"question": "2 + 2 =", "choices": ["3", "4"], "answer": 1, "subject": "sums"}

{"question": "Sky?", "choices": ["blue", "red", "green"], "answer": "A", "more": null}
)";

TEST(ChoiceQuestions, AreReadLineByLine) {
  const auto questions = ParseChoiceQuestions(kLines, "f");
  ASSERT_TRUE(questions.ok()) << questions.status().message();
  ASSERT_EQ(questions->size(), 2u);
  EXPECT_EQ((*questions)[0].answer, 1);
  EXPECT_EQ((*questions)[0].subject, "sums");
  EXPECT_EQ((*questions)[1].answer, 0);
  EXPECT_EQ((*questions)[1].choices.size(), 3u);
  EXPECT_EQ((*questions)[1].subject, "");
}

TEST(ChoiceQuestions, FaultsNameLineAndKey) {
  const auto error = [](std::string_view line) {
    return ParseChoiceQuestions("\n" + std::string(line), "f.jsonl").status().message();
  };
  EXPECT_THAT(error("{"), HasSubstr("f.jsonl: line 2"));
  EXPECT_THAT(error("[]"), HasSubstr("line 2: expected a JSON object, found array"));
  EXPECT_THAT(error(R"({"choices": ["a", "b"], "answer": 0})"), HasSubstr("question"));
  EXPECT_THAT(error(R"({"question": "q", "choices": ["a"], "answer": 0})"),
              HasSubstr("choices: expected a list of 2 to 26 texts"));
  EXPECT_THAT(error(R"({"question": "q", "choices": ["a", 1], "answer": 0})"),
              HasSubstr("choices[1]: expected a text"));
  for (const char* answer : {"2", "-1", "\"C\"", "\"AB\"", "null", "1.5", "99999999999999999999",
                             "18446744073709551615", "\"\""}) {
    EXPECT_THAT(
        error(R"({"question": "q", "choices": ["a", "b"], "answer": )" + std::string(answer) + "}"),
        HasSubstr("answer: expected a number from 0 to 1 or a letter from A to B"))
        << answer;
  }
}

TEST(ChoicePrompt, AsksForALetterInTheLayoutOfTheField) {
  const auto questions = ParseChoiceQuestions(kLines, "f");
  EXPECT_EQ(ChoicePrompt({(*questions)[0]}, (*questions)[1], ChoiceStyle::kLetter),
            "2 + 2 =\nA. 3\nB. 4\nAnswer: B\n\nSky?\nA. blue\nB. red\nC. green\nAnswer:");
  EXPECT_EQ(ChoiceContinuation((*questions)[1], 2, ChoiceStyle::kLetter), " C");
}

TEST(ChoicePrompt, AsksForTheTextOfAChoice) {
  const auto questions = ParseChoiceQuestions(kLines, "f");
  EXPECT_EQ(ChoicePrompt({(*questions)[0]}, (*questions)[1], ChoiceStyle::kText),
            "2 + 2 =\nAnswer: 4\n\nSky?\nAnswer:");
  EXPECT_EQ(ChoiceContinuation((*questions)[1], 2, ChoiceStyle::kText), " green");
}

}  // namespace
}  // namespace hadal
