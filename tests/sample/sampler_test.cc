#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One draw from a copy of `logits`.
struct Drawn {
  bool ok = false;
  SampledToken token;
  std::vector<TokenLogprob> top;
};
Drawn Draw(std::vector<float> logits, const SamplingParams& params, int position = 0,
           int token_limit = 0) {
  Sampler sampler(static_cast<int>(logits.size()));
  if (token_limit > 0) sampler.SetTokenLimit(token_limit);
  Drawn drawn;
  drawn.ok = sampler.Sample({.logits = logits, .params = &params, .position = position},
                            &drawn.token, &drawn.top);
  return drawn;
}

std::vector<TokenId> Ids(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : list) ids.push_back({id.get<int>()});
  return ids;
}

Json Vectors() { return ReadGoldenJson("sampling/sampler_vectors.json"); }

// C055: top_k 0 or below, top_p 0 and edge values of min_p crashed or left no candidate.
TEST(Sampler, FiltersAsGiven) {
  const Json vectors = Vectors();
  ASSERT_EQ(vectors["filters"].size(), 8u);
  for (const Json& item : vectors["filters"]) {
    SCOPED_TRACE(item["params"].dump());
    std::vector<float> logits = item["logits"].get<std::vector<float>>();
    SamplingParams params;
    params.temperature = item["params"].value("T", 1.0f);
    params.top_k = item["params"].value("top_k", 0);
    params.top_p = item["params"].value("top_p", 1.0f);
    params.min_p = item["params"].value("min_p", 0.0f);
    Sampler sampler(static_cast<int>(logits.size()));
    std::map<std::string, double> left;
    for (const Sampler::Candidate& c : sampler.Filter({.logits = logits, .params = &params}))
      left[std::to_string(c.id)] = c.weight;
    ASSERT_EQ(left.size(), item["expect"].size());
    for (const auto& [id, probability] : item["expect"].items()) {
      ASSERT_TRUE(left.contains(id)) << id;
      EXPECT_NEAR(left[id], probability.get<double>(), 1e-8);
    }
  }
}

// C053: penalties counted the wrong tokens, or depended on what was cached. The same history is
// given as cached, as half cached, and as new.
TEST(Sampler, PenalizesAsGivenWhateverWasCached) {
  const Json vectors = Vectors();
  ASSERT_EQ(vectors["penalties"].size(), 2u);
  for (const Json& item : vectors["penalties"]) {
    std::vector<TokenId> tokens = Ids(item["prompt_ids"]);
    const int num_prompt = static_cast<int>(tokens.size());
    for (const TokenId id : Ids(item["output_ids"])) tokens.push_back(id);
    for (size_t num_cached = 0; num_cached <= tokens.size(); ++num_cached) {
      std::vector<float> logits = item["logits"].get<std::vector<float>>();
      SamplingParams params;
      params.repetition_penalty = item["repetition"].get<float>();
      params.frequency_penalty = item["frequency"].get<float>();
      params.presence_penalty = item["presence"].get<float>();
      Sampler sampler(static_cast<int>(logits.size()));
      SampledToken token;
      std::vector<TokenLogprob> top;
      const std::span<const TokenId> all(tokens);
      ASSERT_TRUE(sampler.Sample({.logits = logits,
                                  .params = &params,
                                  .position = static_cast<int>(tokens.size()),
                                  .history = all.first(num_cached),
                                  .recent = all.subspan(num_cached),
                                  .num_prompt_tokens = num_prompt},
                                 &token, &top));
      for (size_t i = 0; i < logits.size(); ++i)
        EXPECT_FLOAT_EQ(logits[i], item["expect"][i].get<float>()) << "id " << i;
    }
  }
}

// C054: penalties and bias were ignored when greedy.
TEST(Sampler, BiasAndPenaltiesActBeforeTheGreedyChoice) {
  SamplingParams params;
  EXPECT_EQ(Draw({1, 5, 4}, params).token.token.value, 1);
  params.logit_bias = {{TokenId{1}, -100.0f}};
  EXPECT_EQ(Draw({1, 5, 4}, params).token.token.value, 2);

  params = {};
  params.presence_penalty = 2.0f;
  std::vector<float> logits{1, 5, 4};
  const std::vector<TokenId> output{{1}};
  Sampler sampler(3);
  SampledToken token;
  std::vector<TokenLogprob> top;
  ASSERT_TRUE(sampler.Sample({.logits = logits, .params = &params, .position = 1, .recent = output},
                             &token, &top));
  EXPECT_EQ(token.token.value, 2);
}

TEST(Sampler, ForgetsTheHistoryOfTheSequenceBefore) {
  SamplingParams params;
  params.frequency_penalty = 1.0f;
  const std::vector<TokenId> output{{0}, {0}};
  Sampler sampler(2);
  SampledToken token;
  std::vector<TokenLogprob> top;
  std::vector<float> logits{2, 1};
  ASSERT_TRUE(
      sampler.Sample({.logits = logits, .params = &params, .recent = output}, &token, &top));
  EXPECT_EQ(token.token.value, 1);
  logits = {2, 1};
  ASSERT_TRUE(sampler.Sample({.logits = logits, .params = &params}, &token, &top));
  EXPECT_EQ(token.token.value, 0);
}

TEST(Sampler, GreedyTiesGoToTheLowestId) { EXPECT_EQ(Draw({2, 7, 7, 7}, {}).token.token.value, 1); }

// C010: padding rows of the head were drawn.
TEST(Sampler, NeverDrawsAnIdWithoutAToken) {
  SamplingParams params;
  EXPECT_EQ(Draw({1, 2, 9, 9}, params, 0, 2).token.token.value, 1);
  params.temperature = 5.0f;
  params.num_logprobs = 4;
  params.logit_bias = {{TokenId{3}, 100.0f}};
  for (int position = 0; position < 200; ++position) {
    const Drawn drawn = Draw({1, 2, 9, 9}, params, position, 2);
    EXPECT_LT(drawn.token.token.value, 2);
    EXPECT_EQ(drawn.top.size(), 2u);
  }
  EXPECT_TRUE(Draw({1, 2, kNan, 9}, params, 0, 2).ok) << "padding is not looked at";
}

// C056: one row with NaN logits aborted the process.
TEST(Sampler, ReportsLogitsThatAreNotFinite) {
  SamplingParams sampled;
  sampled.temperature = 1.0f;
  for (const SamplingParams& params : {SamplingParams{}, sampled}) {
    EXPECT_FALSE(Draw({1, kNan, 2}, params).ok);
    EXPECT_FALSE(Draw({kNan, kNan}, params).ok);
    EXPECT_FALSE(Draw({1, kInfinity}, params).ok);
    EXPECT_FALSE(Draw({-kInfinity, -kInfinity}, params).ok);
  }
}

// C045: logprobs of minus infinity. An impossible token is never drawn and never listed.
TEST(Sampler, LeavesImpossibleTokensOut) {
  SamplingParams params;
  params.num_logprobs = 5;
  for (const float temperature : {0.0f, 1.0f, 1e30f}) {
    params.temperature = temperature;
    const Drawn drawn = Draw({-kInfinity, 3, -kInfinity}, params);
    ASSERT_TRUE(drawn.ok);
    EXPECT_EQ(drawn.token.token.value, 1);
    EXPECT_EQ(drawn.token.logprob, 0.0f);
    ASSERT_EQ(drawn.top.size(), 1u);
    EXPECT_EQ(drawn.token.num_top, 1);
  }
}

// C047: reported probabilities at temperature 0 were all 1, or belonged to another token.
TEST(Sampler, ReportsTheSoftmaxOfTheRawLogitsAtAnyTemperature) {
  const std::vector<float> logits{0.5f, 2.0f, -1.0f, 1.0f};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit);
  SamplingParams params;
  params.num_logprobs = 3;
  for (const float temperature : {0.0f, 1.0f, 3.0f}) {
    for (const float bias : {0.0f, 7.0f}) {
      params.temperature = temperature;
      params.logit_bias.clear();
      if (bias != 0) params.logit_bias = {{TokenId{2}, bias}};
      const Drawn drawn = Draw(logits, params, 11);
      const int chosen = drawn.token.token.value;
      EXPECT_NEAR(drawn.token.logprob, logits[chosen] - std::log(sum), 1e-6);
      ASSERT_GE(drawn.top.size(), 3u);
      EXPECT_EQ(drawn.top[0].token.value, 1);
      EXPECT_EQ(drawn.top[1].token.value, 3);
      EXPECT_EQ(drawn.top[2].token.value, 0);
      EXPECT_NEAR(drawn.top[1].logprob, logits[3] - std::log(sum), 1e-6);
      const bool is_listed = std::ranges::any_of(
          drawn.top, [chosen](const TokenLogprob& t) { return t.token.value == chosen; });
      EXPECT_TRUE(is_listed) << "the chosen token is among the list";
    }
  }
}

TEST(Sampler, GivesOnlyTheDrawnTokensLogprobForZeroAlternatives) {
  SamplingParams params;
  params.num_logprobs = 0;
  const Drawn drawn = Draw({0, 0}, params);
  EXPECT_NEAR(drawn.token.logprob, -std::log(2.0), 1e-6);
  EXPECT_TRUE(drawn.top.empty());
}

TEST(Sampler, DependsOnSeedAndPositionAlone) {
  SamplingParams params;
  params.temperature = 1.0f;
  params.seed = 42;
  std::vector<float> logits(50, 0.0f);
  std::vector<int> first, again;
  for (int position = 0; position < 40; ++position)
    first.push_back(Draw(logits, params, position).token.token.value);
  for (int position = 39; position >= 0; --position)
    again.push_back(Draw(logits, params, position).token.token.value);
  std::ranges::reverse(again);
  EXPECT_EQ(first, again);
  params.seed = 43;
  std::vector<int> other;
  for (int position = 0; position < 40; ++position)
    other.push_back(Draw(logits, params, position).token.token.value);
  EXPECT_NE(first, other);
}

TEST(Sampler, SurvivesExtremeTemperatures) {
  SamplingParams params;
  params.temperature = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Draw({1, 3, 2}, params).token.token.value, 1);
  params.temperature = std::numeric_limits<float>::max();
  const Drawn drawn = Draw({-1e30f, 1e30f, 0}, params, 3);
  EXPECT_TRUE(drawn.ok);
}

// Draws follow the filtered distribution: chi-square with 7 degrees of freedom, 0.1 % level.
TEST(Sampler, DrawsWithTheProbabilitiesOfTheFilters) {
  const std::vector<float> logits{1.0f, 0.5f, 0.0f, -0.5f, 1.5f, -1.0f, 0.2f, 0.9f};
  SamplingParams params;
  params.temperature = 0.8f;
  params.seed = 7;
  Sampler sampler(8);
  std::vector<float> copy = logits;
  std::vector<double> expected(8);
  for (const Sampler::Candidate& c : sampler.Filter({.logits = copy, .params = &params}))
    expected[c.id] = c.weight;
  constexpr int kNumDraws = 20000;
  std::vector<int> counts(8);
  for (int position = 0; position < kNumDraws; ++position)
    ++counts[Draw(logits, params, position).token.token.value];
  double chi_square = 0;
  for (int i = 0; i < 8; ++i) {
    const double mean = expected[i] * kNumDraws;
    chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  EXPECT_LT(chi_square, 24.3);
}

// The definition in its slowest form: sort everything, walk down.
std::vector<int> NaiveFilter(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](int a, int b) { return logits[a] > logits[b]; });
  if (params.top_k > 0 && params.top_k < static_cast<int>(ids.size()))
    ids.resize(static_cast<size_t>(params.top_k));
  const auto weight = [&](int id) {
    return std::exp((static_cast<double>(logits[id]) - logits[ids[0]]) / params.temperature);
  };
  double total = 0, mass = 0;
  for (const int id : ids) total += weight(id);
  if (params.top_p < 1) {
    size_t kept = 0;
    while (kept < ids.size() && (kept == 0 || mass < params.top_p * total - 1e-9 * total))
      mass += weight(ids[kept++]);
    ids.resize(kept);
  }
  // What lies below exp(-46.05) = 1e-20 has no step of the random number and may be missing.
  std::erase_if(ids, [&](int id) {
    return weight(id) < std::min(params.min_p, 1.0f) || weight(id) < std::exp(-46.05);
  });
  std::ranges::sort(ids);
  return ids;
}

TEST(Sampler, AgreesWithASortOfTheWholeVocabulary) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  Sampler sampler(2000);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> logits(2000);
    for (float& logit : logits)
      logit = round % 3 == 0 ? std::round(normal(random)) : normal(random);  // ties in every third
    SamplingParams params;
    params.temperature = std::vector<float>{0.3f, 1.0f, 2.0f}[random() % 3];
    params.top_k = std::vector<int>{0, 1, 40, 500}[random() % 4];
    params.top_p = std::vector<float>{0.0f, 0.5f, 0.93f, 1.0f}[random() % 4];
    params.min_p = std::vector<float>{0.0f, 0.05f, 2.0f}[random() % 3];
    const std::vector<int> expected = NaiveFilter(logits, params);
    const float best = *std::ranges::max_element(logits);
    std::vector<int> left;
    for (const Sampler::Candidate& c : sampler.Filter({.logits = logits, .params = &params}))
      if (c.logit >= best - 46.05f * params.temperature) left.push_back(c.id);
    ASSERT_EQ(left.size(), expected.size()) << "round " << round;
    ASSERT_EQ(left, expected);
  }
}

TEST(Sampler, AllocatesNothingPerDraw) {
  SamplingParams params;
  params.temperature = 1.0f;
  params.top_p = 0.95f;
  params.top_k = 300;
  params.repetition_penalty = 1.1f;
  params.num_logprobs = 5;
  std::vector<float> logits(4096);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(RandomUnit(1, i)) * 10;
  std::vector<TokenId> history(1000);
  for (size_t i = 0; i < history.size(); ++i) history[i] = {static_cast<int>(i)};
  Sampler sampler(4096);
  SampledToken token;
  std::vector<TokenLogprob> top;
  top.reserve(1000);
  const AllocGuard guard;
  for (int position = 0; position < 20; ++position) {
    ASSERT_TRUE(sampler.Sample(
        {.logits = logits, .params = &params, .position = position, .history = history}, &token,
        &top));
  }
  EXPECT_EQ(guard.count(), 0);
}

TEST(Sampler, DrawsOnlyWhatAMaskAllows) {
  std::vector<float> logits(130, 0.0f);
  logits[3] = 9;
  logits[129] = 1;
  const std::vector<uint64_t> allowed = {1ULL << 5, 0, 1ULL << 1};  // ids 5 and 129
  SamplingParams params;
  params.num_logprobs = 1;
  Sampler sampler(130);
  std::vector<TokenLogprob> top;
  SampledToken token;
  std::vector<float> row = logits;
  ASSERT_TRUE(sampler.Sample({.logits = row, .params = &params, .allowed = allowed}, &token, &top));
  EXPECT_EQ(token.token.value, 129);
  // C047: log-probabilities are those of the raw logits all the same.
  EXPECT_NEAR(token.logprob, 1 - std::log(128 + std::exp(9.0) + std::exp(1.0)), 1e-4);
  EXPECT_EQ(top[0].token.value, 3);
  params.temperature = 5;
  std::map<int, int> counts;
  for (int position = 0; position < 200; ++position) {
    row = logits;
    ASSERT_TRUE(
        sampler.Sample({.logits = row, .params = &params, .position = position, .allowed = allowed},
                       &token, &top));
    ++counts[token.token.value];
  }
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[5] + counts[129], 200);
}

TEST(Sampler, SaysWhenAMaskAllowsNothing) {
  std::vector<float> logits(70, 1.0f);
  const std::vector<uint64_t> nothing = {0, 0};
  const SamplingParams params;
  std::vector<TokenLogprob> top;
  SampledToken token;
  Sampler sampler(70);
  EXPECT_FALSE(
      sampler.Sample({.logits = logits, .params = &params, .allowed = nothing}, &token, &top));
}

}  // namespace
}  // namespace hadal
