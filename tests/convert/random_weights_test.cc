#include "convert/random_weights.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/group_tiles.h"
#include "tensor/quantize.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

struct Moments {
  double mean = 0.0, deviation = 0.0;
};

Moments MomentsOf(const std::vector<float>& values) {
  double sum = 0.0, squares = 0.0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
  }
  const auto count = static_cast<double>(values.size());
  return {sum / count, std::sqrt(squares / count)};
}

std::vector<std::byte> Filled(const RandomElements& elements, uint64_t stream, int64_t first,
                              size_t size) {
  std::vector<std::byte> bytes(size);
  elements.Fill(stream, first, bytes);
  return bytes;
}

TEST(RandomElements, Bf16ElementsHaveTheDeviationThatWasAskedFor) {
  const RandomElements elements = RandomElements::Create(QuantFormat::kBF16, 0.02);
  const std::vector<std::byte> bytes = Filled(elements, 5, 0, 200'000);
  std::vector<float> values;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + i, 2);
    values.push_back(Bf16ToFloat(bits));
  }
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, 0.0, 0.0005);
  EXPECT_NEAR(moments.deviation, 0.02, 0.0005);
  EXPECT_NEAR(elements.deviation(), 0.02, 0.0002);
}

TEST(RandomElements, Fp8CodesAreFiniteAndAsWideAsTheirDeviationSays) {
  const RandomElements elements = RandomElements::Create(QuantFormat::kF8Block128);
  std::vector<float> values;
  for (const std::byte code : Filled(elements, 6, 0, 100'000)) {
    values.push_back(E4m3ToFloat(std::to_integer<uint8_t>(code)));
    ASSERT_TRUE(std::isfinite(values.back()));
  }
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.deviation, elements.deviation(), 0.02 * elements.deviation());
  EXPECT_NEAR(moments.mean / moments.deviation, 0.0, 0.02);
}

TEST(RandomElements, APlaceHasTheSameBytesHoweverItIsReached) {
  const RandomElements elements = RandomElements::Create(QuantFormat::kInt8Group);
  const std::vector<std::byte> whole = Filled(elements, 9, 0, 1003);
  const std::vector<std::byte> rest = Filled(elements, 9, 800, 203);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + 800));
  EXPECT_NE(Filled(elements, 10, 0, 1003), whole);
}

TEST(RandomStream, DependsOnSeedAndName) {
  EXPECT_EQ(RandomStream(1, "a"), RandomStream(1, "a"));
  EXPECT_NE(RandomStream(1, "a"), RandomStream(2, "a"));
  EXPECT_NE(RandomStream(1, "ab"), RandomStream(1, "ba"));
}

class RandomTiles : public testing::TestWithParam<GroupShape> {};

TEST_P(RandomTiles, AreAMatrixOfThatDeviationInAnyPieces) {
  const GroupShape shape = GetParam();
  constexpr int kRows = 40, kCols = 672;  // neither whole tiles nor whole groups
  constexpr double kDeviation = 0.05;
  const RandomElements codes = RandomElements::Create(shape.format);
  const double scale = kDeviation / codes.deviation();
  std::vector<std::byte> tiles(static_cast<size_t>(GroupedBytes(shape, kRows, kCols)));
  FillRandomTiles(codes, shape, kRows, kCols, scale, 3, 0, tiles);
  const Moments moments = MomentsOf(Dequantize(GroupedView(shape, kRows, kCols, tiles.data())));
  EXPECT_NEAR(moments.deviation, kDeviation, 0.03 * kDeviation);
  EXPECT_NEAR(moments.mean, 0.0, 0.03 * kDeviation);
  // Rows that fill up the last tile are zero.
  for (int row = kRows; row < 48; ++row) {
    EXPECT_EQ(GroupedElement(shape, kCols, tiles.data(), row, 100), 0.0f);
  }
  std::vector<std::byte> last(static_cast<size_t>(TileBytes(shape, kCols)));
  FillRandomTiles(codes, shape, kRows, kCols, scale, 3, 2, last);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), tiles.end() - static_cast<int>(last.size())));
}

INSTANTIATE_TEST_SUITE_P(Shapes, RandomTiles,
                         testing::Values(GroupShape{QuantFormat::kInt8Group, 32, false},
                                         GroupShape{QuantFormat::kInt8Group, 128, false},
                                         GroupShape{QuantFormat::kInt4Group, 64, false},
                                         GroupShape{QuantFormat::kInt4Group, 128, true}));

}  // namespace
}  // namespace hadal
