#include "sample/rejection_rule.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

using Distribution = std::vector<double>;

TEST(RejectionRule, GivesTheNumbersOfTheSpecification) {
  const Json example = ReadGoldenJson("spec/sampling.json").at("spec_sampling");
  const Json& expected = example["expected"];
  const auto p = example["inputs"]["p"].get<Distribution>();
  const auto q = example["inputs"]["q"].get<Distribution>();
  double overall = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double accepted = AcceptProbability(p[i], q[i]);
    EXPECT_NEAR(accepted, expected["accept_probability_per_token"][i].get<double>(), 1e-11);
    overall += q[i] * accepted;
  }
  EXPECT_NEAR(overall, expected["overall_acceptance"].get<double>(), 1e-12);
  Distribution residual(p.size());
  ASSERT_TRUE(ResidualDistribution(p, q, residual));
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_NEAR(residual[i], expected["residual_distribution"][i].get<double>(), 1e-12);
  }
}

TEST(RejectionRule, NeverRejectsWhatWasDrawnFromTheTargetItself) {
  const Distribution p = {0.5, 0.0, 0.5};
  Distribution residual(3);
  EXPECT_FALSE(ResidualDistribution(p, p, residual));
  EXPECT_EQ(residual, p);
  EXPECT_EQ(AcceptProbability(0.5, 0.5), 1);
  EXPECT_EQ(AcceptProbability(0.0, 0.0), 0);
  EXPECT_EQ(AcceptProbability(0.0, 0.5), 0);
}

int Draw(const Distribution& weights, double unit) {
  for (size_t i = 0; i + 1 < weights.size(); ++i) {
    if (unit < weights[i]) return static_cast<int>(i);
    unit -= weights[i];
  }
  return static_cast<int>(weights.size()) - 1;
}

// C102: with drafts the sampled text had another distribution. Chi-square with 4 degrees of freedom
// at the 0.1 % level, for a spread draft and for one that puts everything on one token.
TEST(RejectionRule, KeepsTheDistributionOfTheTarget) {
  const Distribution p = {0.4, 0.25, 0.2, 0.1, 0.05};
  constexpr int kNumDraws = 20000;
  for (const Distribution& q : {Distribution{0.1, 0.5, 0.1, 0.1, 0.2}, {0, 0, 1, 0, 0}}) {
    Distribution residual(p.size());
    ASSERT_TRUE(ResidualDistribution(p, q, residual));
    std::vector<int> counts(p.size());
    for (uint64_t i = 0; i < kNumDraws; ++i) {
      auto token = static_cast<size_t>(Draw(q, RandomUnit(1, i, 0)));
      if (RandomUnit(1, i, 1) >= AcceptProbability(p[token], q[token])) {
        token = static_cast<size_t>(Draw(residual, RandomUnit(1, i, 2)));
      }
      ++counts[token];
    }
    double chi_square = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      const double mean = p[i] * kNumDraws;
      chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    EXPECT_LT(chi_square, 18.5);
  }
}

}  // namespace
}  // namespace hadal
