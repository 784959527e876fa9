#include "sample/classic_verifier.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sample/rejection_rule.h"

namespace hadal {
namespace {

constexpr int kNumDraws = 120'000;
// Chi-square with 4 degrees of freedom at the 0.1 % level.
constexpr double kLimit = 18.47;

using Distribution = std::vector<double>;

DraftDistribution AsCandidates(const Distribution& weights) {
  DraftDistribution candidates;
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) candidates.push_back({weights[i], 0, static_cast<int32_t>(i)});
  return candidates;
}

TokenId DrawFrom(const Distribution& weights, double unit) {
  for (size_t i = 0; i + 1 < weights.size(); ++i) {
    if (unit < weights[i]) return {static_cast<int32_t>(i)};
    unit -= weights[i];
  }
  return {static_cast<int32_t>(weights.size()) - 1};
}

double ChiSquare(const std::vector<int>& counts, const Distribution& p) {
  double total = 0, sum = 0;
  for (const int count : counts) total += count;
  for (size_t i = 0; i < p.size(); ++i) {
    const double mean = p[i] * total;
    if (mean > 0) sum += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  return sum;
}

using Rule =
    std::function<TokenId(std::span<const Sampler::Candidate> p, const DraftDistribution& q,
                          TokenId draft, uint64_t seed, int position)>;

// How far the tokens that a rule gives are from the target's distribution.
double ChiSquareOf(const Rule& rule, const Distribution& p, const Distribution& q) {
  const DraftDistribution target = AsCandidates(p), drafted = AsCandidates(q);
  std::vector<int> counts(p.size());
  for (int i = 0; i < kNumDraws; ++i) {
    const TokenId draft = DrawFrom(q, RandomUnit(9, static_cast<uint64_t>(i), kDraftStream));
    ++counts[static_cast<size_t>(rule(target, drafted, draft, 9, i).value)];
  }
  return ChiSquare(counts, p);
}

// The rule with the mistake that is easily made: what is left is looked up one place too far.
TokenId OffByOne(std::span<const Sampler::Candidate> p, const DraftDistribution& q, TokenId draft,
                 uint64_t seed, int position) {
  const TokenId token = AcceptOrReplace(p, q, draft, seed, position);
  if (token == draft) return token;
  return {p[static_cast<size_t>(token.value + 1) % p.size()].id};
}

const std::vector<Distribution>& Drafts() {
  static const std::vector<Distribution> all = {
      {0.1, 0.5, 0.1, 0.1, 0.2}, {0, 0, 1, 0, 0}, {0.4, 0.25, 0.2, 0.1, 0.05}};
  return all;
}

const Distribution kTarget = {0.4, 0.25, 0.2, 0.1, 0.05};

// C102, over more than 100,000 draws: for a spread draft, for one that puts everything on one
// token, and for one that copies the target.
TEST(ClassicVerifier, KeepsTheDistributionOfTheTarget) {
  for (const Distribution& q : Drafts())
    EXPECT_LT(ChiSquareOf(&AcceptOrReplace, kTarget, q), kLimit);
}

TEST(ClassicVerifier, TheTestOfTheDistributionSeesAnOffByOneInTheResidual) {
  for (const Distribution& q : {Drafts()[0], Drafts()[1]})
    EXPECT_GT(ChiSquareOf(&OffByOne, kTarget, q), kLimit);
}

TEST(ClassicVerifier, AlwaysAcceptsDraftsOfTheTargetsOwnDistribution) {
  const DraftDistribution target = AsCandidates(kTarget);
  for (int i = 0; i < 1000; ++i) {
    const TokenId draft = DrawFrom(kTarget, RandomUnit(2, static_cast<uint64_t>(i)));
    EXPECT_EQ(AcceptOrReplace(target, target, draft, 2, i), draft);
  }
}

TEST(ClassicVerifier, NeverAcceptsWhatTheFiltersLeaveOut) {
  const DraftDistribution target = AsCandidates({0.5, 0, 0.5});
  for (int i = 0; i < 1000; ++i) EXPECT_NE(AcceptOrReplace(target, {}, {1}, 5, i), (TokenId{1}));
}

// The whole way, from logits and two drafts: the joint distribution of the first two tokens is that
// of plain sampling, with a temperature and a filter, and with drafts of another distribution.
TEST(ClassicVerifier, GivesPairsOfTokensLikePlainSampling) {
  constexpr int kVocab = 4;
  const std::vector<float> rows[] = {
      {0.5f, 1.5f, 0.0f, -1.0f}, {1.0f, 0.0f, 0.7f, 0.2f}, {0.1f, 0.2f, 0.3f, 0.4f}};
  const Distribution q = {0.25, 0.25, 0.25, 0.25};
  Sampler sampler(kVocab);
  std::vector<int> joint(kVocab * kVocab), first(kVocab);
  std::vector<Distribution> p;
  SamplingParams params;
  params.temperature = 0.8f;
  params.min_p = 0.05f;
  for (int i = 0; i < 2; ++i) {
    std::vector<float> row = rows[i];
    Distribution& distribution = p.emplace_back(kVocab);
    for (const auto& candidate : sampler.Filter({.logits = row, .params = &params}))
      distribution[static_cast<size_t>(candidate.id)] = candidate.weight;
  }
  for (int i = 0; i < kNumDraws; ++i) {
    BatchPlan plan;
    SequenceSlice slice{
        .id = {0}, .num_tokens = 3, .num_cached = 3 * i, .num_drafts = 2, .wants_tokens = true};
    slice.sampling = params;
    slice.sampling.seed = 11;
    plan.tokens.push_back({0});
    for (int d = 0; d < 2; ++d) {
      const auto position = static_cast<uint64_t>(3 * i + 1 + d);
      plan.tokens.push_back(DrawFrom(q, RandomUnit(11, position, kDraftStream)));
    }
    std::vector<float> logits;
    for (const auto& row : rows) logits.insert(logits.end(), row.begin(), row.end());
    StepResult result;
    SampleSliceClassic(plan, slice, {.data = logits.data(), .stride = kVocab, .row_size = kVocab},
                       std::vector<DraftDistribution>(2, AsCandidates(q)), &sampler, &result);
    const int a = result.tokens[0].token.value;
    ++first[static_cast<size_t>(a)];
    if (result.tokens.size() < 2) continue;
    ++joint[static_cast<size_t>(a * kVocab + result.tokens[1].token.value)];
  }
  EXPECT_LT(ChiSquare(first, p[0]), 16.27);  // 3 degrees of freedom, 0.1 %
  // Which second tokens come does not depend on the first one here.
  for (int a = 0; a < kVocab; ++a) {
    const std::vector<int> second(joint.begin() + a * kVocab, joint.begin() + (a + 1) * kVocab);
    if (*std::ranges::max_element(second) < 500) continue;
    EXPECT_LT(ChiSquare(second, p[1]), 16.27) << "behind " << a;
  }
}

}  // namespace
}  // namespace hadal
