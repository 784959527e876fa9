#include "model/expert_load.h"

#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

MatrixView<const int32_t> View(const std::vector<int32_t>& ids, int per_token) {
  return {.data = ids.data(),
          .rows = static_cast<int>(ids.size()) / per_token,
          .cols = per_token,
          .stride = per_token};
}

TEST(ExpertLoad, CountsEachExpertOnceAStepAndLayer) {
  ExpertLoad load(/*num_layers=*/3, /*num_experts=*/4);
  load.Count(1, View({0, 2, 0, 3, 2, 0}, 2));  // experts 0, 2 and 3
  EXPECT_EQ(load.num_reads(), 3);
  load.Count(2, View({1, 0}, 2));
  load.Count(1, View({0, 1}, 2));
  EXPECT_EQ(load.num_reads(), 7);
}

TEST(ExpertLoad, TellsHowFarALayerIsOutOfBalance) {
  ExpertLoad load(3, 4);
  EXPECT_EQ(load.Imbalance(1), 0.0);
  load.Count(1, View({0, 1, 2, 3}, 2));
  EXPECT_EQ(load.Imbalance(1), 1.0);
  load.Count(1, View({0, 1, 0, 1}, 2));  // 3, 3, 1, 1
  EXPECT_EQ(load.Imbalance(1), 1.5);
  EXPECT_EQ(load.Imbalance(0), 0.0);  // a dense layer
  load.Count(2, View({3}, 1));
  EXPECT_EQ(load.Imbalance(2), 4.0);
}

}  // namespace
}  // namespace hadal
