#include "evaluate/logit_row.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(LogitRow, LikelihoodOfAToken) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f};
  const double total = std::log(1.0 + std::exp(1.0) + std::exp(2.0));
  EXPECT_NEAR(LogSumExp(logits), total, 1e-12);
  EXPECT_NEAR(NegativeLogLikelihood(logits, 1), total - 1.0, 1e-12);
}

TEST(LogitRow, LargeLogitsDoNotOverflow) {
  const std::vector<float> logits = {1e4f, 1e4f};
  EXPECT_NEAR(NegativeLogLikelihood(logits, 0), std::log(2.0), 1e-9);
}

TEST(LogitRow, OfEqualLogitsTheFirstIsBest) {
  EXPECT_EQ(BestId(std::vector<float>{1.0f, 3.0f, 3.0f, 2.0f}), 1);
}

// p = (1/2, 1/2), q = (3/4, 1/4): (1/2) log(2/3) + (1/2) log(2) = (1/2) log(4/3).
TEST(LogitRow, DivergenceOfTwoCoins) {
  const float log3 = std::log(3.0f);
  const std::vector<float> p = {5.0f, 5.0f}, q = {log3, 0.0f};
  EXPECT_NEAR(KlDivergence(p, q), 0.5 * std::log(4.0 / 3.0), 1e-7);
  // The other way round: (3/4) log(3/2) + (1/4) log(1/2).
  EXPECT_NEAR(KlDivergence(q, p), 0.75 * std::log(1.5) + 0.25 * std::log(0.5), 1e-7);
  EXPECT_NEAR(KlDivergence(q, q), 0.0, 1e-15);
}

TEST(LogitRow, WhatHasNoProbabilityAddsNothing) {
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> p = {0.0f, none}, q = {0.0f, 0.0f};
  EXPECT_NEAR(KlDivergence(p, q), std::log(2.0), 1e-12);
}

}  // namespace
}  // namespace hadal
