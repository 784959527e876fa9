#include "evaluate/text_evaluation.h"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/logit_row.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

RunnerOptions Model(std::string_view name) {
  RunnerOptions options;
  options.model_path =
      std::string(HADAL_SOURCE_DIR) + "/tests/golden/models/" + std::string(name) + "/model";
  options.num_threads = 1;
  return options;
}

TextEvaluation Alone(std::string_view name) {
  return {.model = Model(name), .against = {}, .stored_against = {}, .store_path = {}};
}

const std::vector<TokenWindow> kWindows = {{{5}, {9}, {77}, {300}, {2}}, {{8}, {1}, {3}}};

TextScores Scores(const TextEvaluation& evaluation) {
  const Result<TextScores> scores = EvaluateText(evaluation, kWindows, nullptr);
  EXPECT_TRUE(scores.ok()) << scores.status().message();
  return scores.ok() ? *scores : TextScores();
}

TEST(EvaluateText, CountsEveryTokenOfAWindowButTheFirst) {
  const TextScores scores = Scores(Alone("v3-f32"));
  EXPECT_EQ(scores.nll.count(), 4 + 2);
  EXPECT_EQ(scores.mtp_agreement.count(), 3 + 1);
  EXPECT_TRUE(scores.has_mtp);
  EXPECT_EQ(scores.kl.count(), 0);
}

TEST(EvaluateText, TheLikelihoodIsThatOfTheModelsLogits) {
  RunnerOptions options = Model("v3-f32");
  const auto runner = LogitsRunner::Create(options, 8);
  ASSERT_TRUE(runner.ok());
  MeanEstimate expected;
  for (const TokenWindow& window : kWindows) {
    ASSERT_TRUE((*runner)
                    ->Run(window,
                          [&](const LogitsChunk& chunk) {
                            if (chunk.kind != LogitsKind::kMain) return Status::Ok();
                            const auto vocab = static_cast<size_t>(chunk.vocab_size);
                            for (size_t i = 0; i + 1 < window.size(); ++i) {
                              expected.Add(NegativeLogLikelihood(
                                  std::span(chunk.data + i * vocab, vocab), window[i + 1].value));
                            }
                            return Status::Ok();
                          })
                    .ok());
  }
  const TextScores scores = Scores(Alone("v3-f32"));
  EXPECT_DOUBLE_EQ(scores.nll.mean(), expected.mean());
  EXPECT_DOUBLE_EQ(scores.perplexity(), std::exp(expected.mean()));
}

TEST(EvaluateText, DoesNotDependOnTheChunksInWhichWindowsAreRead) {
  TextEvaluation chunked = Alone("v3-f32");
  chunked.model.max_step_tokens = 2;
  EXPECT_DOUBLE_EQ(Scores(chunked).nll.mean(), Scores(Alone("v3-f32")).nll.mean());
  EXPECT_EQ(Scores(chunked).mtp_agreement.count(), 4);
}

TEST(EvaluateText, AModelHasNoDistanceFromItself) {
  TextEvaluation evaluation = Alone("v3-f32");
  evaluation.against = evaluation.model;
  const TextScores scores = Scores(evaluation);
  EXPECT_EQ(scores.kl.count(), 6);
  EXPECT_NEAR(scores.kl.mean(), 0.0, 1e-12);
  EXPECT_EQ(scores.top1_agreement.mean(), 1.0);
  EXPECT_DOUBLE_EQ(scores.other_nll.mean(), scores.nll.mean());
}

TEST(EvaluateText, StoredLogitsStandInForTheModelThatMadeThem) {
  const TempDir dir;
  TextEvaluation store = Alone("v3-fp8"), stored = Alone("v3-f32"), direct = stored;
  store.store_path = dir.File("logits.safetensors");
  stored.stored_against = store.store_path;
  direct.against = Model("v3-fp8");
  Scores(store);
  const TextScores a = Scores(stored), b = Scores(direct);
  EXPECT_GT(a.kl.mean(), 0.0);
  EXPECT_DOUBLE_EQ(a.kl.mean(), b.kl.mean());
  EXPECT_DOUBLE_EQ(a.other_nll.mean(), b.other_nll.mean());
}

TEST(EvaluateText, RefusesWhatCannotBeCompared) {
  TextEvaluation evaluation = Alone("v3-f32");
  RunnerOptions tiny;
  tiny.model_path = fmt::format("{}/models/tiny", HADAL_SOURCE_DIR);
  evaluation.against = tiny;
  EXPECT_THAT(EvaluateText(evaluation, kWindows, nullptr).status().message(),
              HasSubstr("expected a vocabulary of 320 like the model's, found 4096"));
}

TEST(EvaluateText, AnIdOutsideTheVocabularyIsRefused) {
  EXPECT_THAT(EvaluateText(Alone("v3-f32"), {{{5}, {320}}}, nullptr).status().message(),
              HasSubstr("found 320"));
}

}  // namespace
}  // namespace hadal
