#include "sample/logit_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Ends within a block and within a vector.
constexpr int kSize = 3 * LogitBlocks::kBlockLogits + 37;

std::vector<float> RandomRow(int size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(-2, 4);
  std::vector<float> row(static_cast<size_t>(size));
  for (float& logit : row) logit = normal(random);
  return row;
}

TEST(LogitBlocks, FindsTheFirstOfTheBestWhereverItIs) {
  std::vector<float> row = RandomRow(kSize, 1);
  LogitBlocks blocks(kSize);
  for (int place = 0; place < kSize; ++place) {
    const float before = std::exchange(row[static_cast<size_t>(place)], 99.0f);
    const float last = std::exchange(row.back(), 99.0f);
    ASSERT_TRUE(blocks.Read(row));
    ASSERT_EQ(blocks.Best().value, place);
    ASSERT_EQ(blocks.max(), 99.0f);
    row.back() = last;
    if (place + 1 < kSize) row[static_cast<size_t>(place)] = before;
  }
}

TEST(LogitBlocks, SeesWhatIsNotFiniteWhereverItIs) {
  LogitBlocks blocks(kSize);
  for (int place = 0; place < kSize; ++place) {
    std::vector<float> row = RandomRow(kSize, 2);
    row[static_cast<size_t>(place)] = kNan;
    ASSERT_FALSE(blocks.Read(row)) << place;
    row[static_cast<size_t>(place)] = kInf;
    ASSERT_FALSE(blocks.Read(row)) << place;
    row[static_cast<size_t>(place)] = -kInf;
    ASSERT_TRUE(blocks.Read(row)) << place;
  }
  EXPECT_FALSE(blocks.Read(std::vector<float>(kSize, -kInf)));
}

TEST(LogitBlocks, VisitsWhatIsHighEnoughInOrder) {
  std::vector<float> row = RandomRow(kSize, 3);
  row[5] = -kInf;
  LogitBlocks blocks(kSize);
  ASSERT_TRUE(blocks.Read(row));
  for (const double lowest : {3.0, -2.0, -1e300}) {
    std::vector<int32_t> expected, found;
    for (int id = 0; id < kSize; ++id) {
      const float logit = row[static_cast<size_t>(id)];
      if (logit >= lowest && std::isfinite(logit)) expected.push_back(id);
    }
    blocks.VisitFrom(lowest, [&](int32_t id, float logit) {
      found.push_back(id);
      EXPECT_EQ(logit, row[static_cast<size_t>(id)]);
    });
    EXPECT_EQ(found, expected) << lowest;
  }
}

TEST(LogitBlocks, SumsWeightsAsExpDoes) {
  for (const double temperature : {0.05, 0.7, 1.0, 3.0}) {
    for (const int size : {1, 3, 255, kSize}) {
      std::vector<float> row = RandomRow(size, 4);
      row[0] = -kInf;
      row[static_cast<size_t>(size) / 2] = 18;
      LogitBlocks blocks(size);
      ASSERT_TRUE(blocks.Read(row));
      double all = 0, low = 0;
      for (const float logit : row) {
        const double weight = std::exp((logit - 18.0) / temperature);
        all += weight;
        if (logit < 1.0f) low += weight;
      }
      EXPECT_NEAR(blocks.SumWeights(temperature), all, 3e-7 * all);
      EXPECT_NEAR(blocks.SumWeights(temperature, 1.0f), low, 4e-6 * low + 1e-20);
    }
  }
}

TEST(LogitBlocks, GivesTheBestAWeightOfExactlyOneAndImpossibleOnesNone) {
  const std::vector<float> row = {-kInf, 2.0f, 2.0f - 51.0f, -kInf, 2.0f};
  LogitBlocks blocks(5);
  ASSERT_TRUE(blocks.Read(row));
  EXPECT_EQ(blocks.SumWeights(1), 2.0);
  EXPECT_EQ(blocks.SumWeights(1e-40), 2.0) << "colder than a float can divide by";
}

// Every id gets the targets between the sums before and behind it.
TEST(LogitBlocks, LaysWeightsSideBySide) {
  constexpr double kTemperature = 2;
  std::vector<float> row = RandomRow(kSize, 5);
  for (int id = 0; id < 300; ++id) row[static_cast<size_t>(id)] = -kInf;
  LogitBlocks blocks(kSize);
  ASSERT_TRUE(blocks.Read(row));
  const double total = blocks.SumWeights(kTemperature);
  double before = 0;
  for (int id = 0; id < kSize; ++id) {
    const double weight =
        std::exp((static_cast<double>(row[static_cast<size_t>(id)]) - blocks.max()) / kTemperature);
    if (weight > 1e-4) {
      EXPECT_EQ(blocks.AtWeight(before + 0.5 * weight, kTemperature).value, id);
    }
    before += weight;
  }
  EXPECT_EQ(blocks.AtWeight(0, kTemperature).value, 300);
  EXPECT_EQ(blocks.AtWeight(total, kTemperature).value, kSize - 1) << "rounded up";
}

}  // namespace
}  // namespace hadal
