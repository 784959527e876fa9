#include "evaluate/choice_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::HasSubstr;

std::string TinyPath() { return std::string(HADAL_SOURCE_DIR) + "/models/tiny"; }

Result<ChoiceScores> Evaluate(const std::vector<ChoiceQuestion>& questions,
                              const ChoiceOptions& options) {
  RunnerOptions model;
  model.model_path = TinyPath();
  model.num_threads = 1;
  const Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(TinyPath());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return EvaluateChoices(model, **tokenizer, questions, options, nullptr);
}

// What the bundled model was trained on: the right end of a sentence is far more likely.
const std::vector<ChoiceQuestion> kEasy = {
    {"Once there was a dog, and the dog was a good", "dogs", {"dog", "Quixotic zebra-zygote"}, 0},
    {"It is a truth that the King of England was the king of",
     "kings",
     {"xylophones[]{}", "England"},
     1}};

TEST(EvaluateChoices, FindsWhatTheModelFindsLikely) {
  const Result<ChoiceScores> scores = Evaluate(kEasy, {.style = ChoiceStyle::kText});
  ASSERT_TRUE(scores.ok()) << scores.status().message();
  EXPECT_EQ(scores->accuracy.count(), 2);
  EXPECT_EQ(scores->accuracy.mean(), 1.0);
  EXPECT_EQ(scores->by_subject.at("kings").mean(), 1.0);
}

TEST(EvaluateChoices, AWrongKeyIsAWrongAnswer) {
  std::vector<ChoiceQuestion> wrong = kEasy;
  wrong[0].answer = 1;
  const Result<ChoiceScores> scores = Evaluate(wrong, {.style = ChoiceStyle::kText});
  ASSERT_TRUE(scores.ok());
  EXPECT_EQ(scores->accuracy.mean(), 0.5);
}

TEST(EvaluateChoices, LettersOfOneQuestionGetOneAnswer) {
  // Whatever the model prefers: of all possible keys exactly one is right.
  int num_right = 0;
  for (int answer = 0; answer < 4; ++answer) {
    const Result<ChoiceScores> scores =
        Evaluate({{"Which is a colour?", "", {"dog", "red", "run", "two"}, answer}}, {});
    ASSERT_TRUE(scores.ok());
    num_right += scores->accuracy.mean() == 1.0 ? 1 : 0;
    EXPECT_TRUE(scores->by_subject.empty());
  }
  EXPECT_EQ(num_right, 1);
}

TEST(EvaluateChoices, WorkedExamplesAreNotAsked) {
  const Result<ChoiceScores> scores =
      Evaluate(kEasy, {.style = ChoiceStyle::kText, .num_shots = 1});
  ASSERT_TRUE(scores.ok());
  EXPECT_EQ(scores->accuracy.count(), 1);
  EXPECT_THAT(Evaluate(kEasy, {.num_shots = 2}).status().message(),
              HasSubstr("expected more than the 2 worked examples, found 2"));
}

TEST(EvaluateChoices, AQuestionLongerThanTheContextIsNamed) {
  std::string text = "a";
  for (int i = 0; i < 3000; ++i) text += " a";
  const Status status = Evaluate({kEasy[0], {text, "", {"a", "b"}, 0}}, {}).status();
  EXPECT_THAT(status.message(), HasSubstr("question 2: tokens: expected at most"));
}

}  // namespace
}  // namespace hadal
