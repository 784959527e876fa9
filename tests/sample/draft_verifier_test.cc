#include "sample/draft_verifier.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace hadal {
namespace {

constexpr int kVocab = 5;

// Logits that depend on the position of the drawn token alone.
std::vector<float> LogitsAt(int position) {
  std::vector<float> logits(kVocab);
  for (int i = 0; i < kVocab; ++i)
    logits[i] =
        static_cast<float>(RandomUnit(99, static_cast<uint64_t>(position * kVocab + i))) * 3;
  return logits;
}

// A slice whose new tokens are one certain token at `position - 1` and `drafts`.
StepResult Verify(const std::vector<int>& drafts, int position, const SamplingParams& sampling,
                  bool with_nan = false) {
  BatchPlan plan;
  plan.tokens.push_back({0});
  for (const int draft : drafts) plan.tokens.push_back({draft});
  plan.slices.push_back({.id = {7},
                         .num_tokens = static_cast<int>(plan.tokens.size()),
                         .num_cached = position - 1,
                         .num_prompt_tokens = 1,
                         .num_drafts = static_cast<int>(drafts.size()),
                         .wants_tokens = true,
                         .sampling = sampling});
  std::vector<float> rows;
  for (size_t i = 0; i <= drafts.size(); ++i) {
    const std::vector<float> row = LogitsAt(position + static_cast<int>(i));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  if (with_nan) rows[kVocab] = std::numeric_limits<float>::quiet_NaN();  // in the second row
  Sampler sampler(kVocab);
  StepResult result;
  SampleSlice(plan, plan.slices[0], {rows.data(), kVocab, kVocab}, &sampler, &result);
  return result;
}

std::vector<int> Plain(int count, int position, const SamplingParams& sampling) {
  std::vector<int> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(Verify({}, position + i, sampling).tokens[0].token.value);
  return tokens;
}

SamplingParams Sampled(uint64_t seed) {
  SamplingParams params;
  params.temperature = 1.0f;
  params.seed = seed;
  return params;
}

// C103: drafting changed the greedy answer; here also the sampled one.
TEST(DraftVerifier, DrawsWhatPlainDecodingDraws) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const SamplingParams params = seed % 2 == 0 ? SamplingParams{} : Sampled(seed);
    const std::vector<int> plain = Plain(4, 10, params);
    const std::vector<int> drafts{plain[0], plain[1], (plain[2] + 1) % kVocab};
    const StepResult result = Verify(drafts, 10, params);
    ASSERT_EQ(result.tokens.size(), 3u) << "two drafts are right, the third is replaced";
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(result.tokens[i].token.value, plain[i]);
  }
}

TEST(DraftVerifier, AcceptsEveryDraftThatCopiesTheTarget) {
  const std::vector<int> plain = Plain(4, 10, Sampled(3));
  const StepResult result = Verify({plain[0], plain[1], plain[2]}, 10, Sampled(3));
  ASSERT_EQ(result.slices[0].num_tokens, 4);
  EXPECT_EQ(result.tokens[3].token.value, plain[3]);
}

TEST(DraftVerifier, DrawsNothingWhileThePromptIsPartlyRead) {
  BatchPlan plan;
  plan.tokens = {{1}, {2}};
  plan.slices.push_back({.id = {7}, .num_tokens = 2, .num_prompt_tokens = 9, .sampling = {}});
  Sampler sampler(kVocab);
  StepResult result;
  SampleSlice(plan, plan.slices[0], {}, &sampler, &result);
  ASSERT_EQ(result.slices.size(), 1u);
  EXPECT_EQ(result.slices[0].num_tokens, 0);
  EXPECT_EQ(result.slices[0].error, SliceError::kNone);
}

TEST(DraftVerifier, GivesNoTokensWhenARowIsNotFinite) {
  const std::vector<int> plain = Plain(1, 10, {});
  const StepResult result = Verify({plain[0]}, 10, {}, true);
  EXPECT_EQ(result.slices[0].error, SliceError::kLogitsNotFinite);
  EXPECT_EQ(result.slices[0].num_tokens, 0);
  EXPECT_TRUE(result.tokens.empty());
}

// The penalty of a position counts the drafts before it and nothing behind it.
TEST(DraftVerifier, CountsAcceptedDraftsInThePenalties) {
  SamplingParams params;
  params.presence_penalty = 100.0f;
  const StepResult result = Verify({Plain(1, 10, {})[0]}, 10, params);
  ASSERT_EQ(result.tokens.size(), 2u);
  EXPECT_NE(result.tokens[1].token, result.tokens[0].token);
}

// C102: with drafts the sampled text had another distribution. Chi-square over the first token with
// 4 degrees of freedom, 0.1 % level, for a spread draft and for one that always says the same.
TEST(DraftVerifier, KeepsTheDistributionOfTheTarget) {
  const std::vector<float> logits = LogitsAt(10);
  double total = 0;
  for (const float logit : logits) total += std::exp(logit);
  constexpr int kNumDraws = 20000;
  for (const bool is_spread : {true, false}) {
    std::vector<int> counts(kVocab);
    for (int i = 0; i < kNumDraws; ++i)
      ++counts[Verify({is_spread ? i % kVocab : 2}, 10, Sampled(static_cast<uint64_t>(i)))
                   .tokens[0]
                   .token.value];
    double chi_square = 0;
    for (int i = 0; i < kVocab; ++i) {
      const double mean = std::exp(logits[i]) / total * kNumDraws;
      chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    EXPECT_LT(chi_square, 18.5);
  }
}

}  // namespace
}  // namespace hadal
