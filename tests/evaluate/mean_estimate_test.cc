#include "evaluate/mean_estimate.h"

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(MeanEstimate, OfFourValues) {
  MeanEstimate estimate;
  for (const double value : {1.0, 2.0, 4.0, 5.0}) estimate.Add(value);
  EXPECT_EQ(estimate.count(), 4);
  EXPECT_DOUBLE_EQ(estimate.mean(), 3.0);
  // Sample variance 10 / 3, over 4.
  EXPECT_NEAR(estimate.error(), 0.9128709292, 1e-9);
}

TEST(MeanEstimate, ASmallSpreadAroundALargeMeanIsNotLost) {
  MeanEstimate estimate;
  for (int i = 0; i < 1000; ++i) estimate.Add(1e9 + i % 2);
  EXPECT_NEAR(estimate.error(), 0.5 / std::sqrt(999.0), 1e-9);
}

TEST(MeanEstimate, OneValueHasNoError) {
  MeanEstimate estimate;
  EXPECT_EQ(estimate.mean(), 0.0);
  estimate.Add(7.0);
  EXPECT_EQ(estimate.mean(), 7.0);
  EXPECT_EQ(estimate.error(), 0.0);
}

}  // namespace
}  // namespace hadal
