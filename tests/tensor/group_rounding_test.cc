#include "tensor/group_rounding.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"
#include "tensor/group_tiles.h"
#include "tensor/quantize.h"
#include "tensor/scalar.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

constexpr GroupShape kInt8 = {QuantFormat::kInt8Group, 32, false};
constexpr GroupShape kInt4 = {QuantFormat::kInt4Group, 32, false};
constexpr GroupShape kInt4Zero = {QuantFormat::kInt4Group, 32, true};

std::vector<float> RandomValues(size_t size, uint64_t seed, double skew = 0.0) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) {
    double sum = skew;
    for (uint64_t part = 0; part < 6; ++part) sum += RandomUnit(seed, i, part) - 0.5;
    values[i] = static_cast<float>(0.05 * sum);
  }
  return values;
}

std::vector<float> Rounded(const GroupShape& shape, const GroupScale& scale,
                           const std::vector<float>& values) {
  std::vector<int8_t> codes(values.size());
  RoundToCodes(shape, scale, values, codes);
  const CodeGrid grid = GridOf(shape, scale);
  std::vector<float> rounded;
  for (const int8_t code : codes) {
    EXPECT_GE(code, grid.lowest);
    EXPECT_LE(code, grid.highest);
    rounded.push_back(static_cast<float>(code - grid.offset) * grid.step);
  }
  return rounded;
}

double Error(const GroupShape& shape, const std::vector<float>& values, ScaleChoice choice,
             const std::vector<float>& importance = {}) {
  const std::vector<float> rounded =
      Rounded(shape, ChooseScale(shape, values, importance, choice), values);
  double error = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = double{values[i]} - rounded[i];
    error += (importance.empty() ? 1.0 : importance[i]) * difference * difference;
  }
  return error;
}

// The specification's group, whose scale is stored as binary16 here.
TEST(ChooseScale, CoversTheRangeAsTheSpecificationDoes) {
  const Json examples = ReadGoldenJson("spec/quantized.json");
  for (const bool is_symmetric : {false, true}) {
    const Json& example = examples.at(is_symmetric ? "group_sym_int4" : "group_asym_int4");
    const auto x = example["inputs"]["x"].get<std::vector<float>>();
    const GroupShape shape = is_symmetric ? kInt4 : kInt4Zero;
    const GroupScale scale = ChooseScale(shape, x, {}, ScaleChoice::kRange);
    const double expected = example["expected"]["scale"].get<double>();
    EXPECT_NEAR(Fp16ToFloat(scale.scale_bits), expected, 1e-3 * expected);
    std::vector<int8_t> codes(x.size());
    RoundToCodes(shape, scale, x, codes);
    const int shift = is_symmetric ? 8 : 0;
    if (!is_symmetric) {
      EXPECT_EQ(scale.zero_point, example["expected"]["zero_point"].get<int>());
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const int code = example["expected"]["q"][i].get<int>();
      // A value half way between two codes goes either way when the scale has fewer digits.
      const double steps = x[i] / expected;
      const bool is_half_way = std::abs(steps - std::floor(steps) - 0.5) < 4e-3;
      EXPECT_LE(std::abs(codes[i] - shift - code), is_half_way ? 1 : 0) << i;
    }
  }
}

TEST(ChooseScale, RoundToNearestErrsByHalfAStepAtMost) {
  for (const GroupShape& shape : {kInt8, kInt4, kInt4Zero}) {
    const std::vector<float> values = RandomValues(32, 3, 0.4);
    const GroupScale scale = ChooseScale(shape, values, {}, ScaleChoice::kRange);
    const std::vector<float> rounded = Rounded(shape, scale, values);
    const double step = std::fabs(Fp16ToFloat(scale.scale_bits));
    // The range is covered up to binary16's rounding, and with a zero point up to half a step.
    const double slack = shape.has_zero_points ? 1.05 : 0.52;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(std::fabs(values[i] - rounded[i]), slack * step);
    }
  }
}

TEST(ChooseScale, MoreWorkIsNeverWorse) {
  for (const GroupShape& shape : {kInt8, kInt4, kInt4Zero}) {
    double range = 0.0, quick = 0.0, search = 0.0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const std::vector<float> values = RandomValues(32, seed, seed % 2 == 0 ? 0.0 : 0.5);
      const double by_range = Error(shape, values, ScaleChoice::kRange);
      const double by_search = Error(shape, values, ScaleChoice::kSearch);
      EXPECT_LE(by_search, by_range * (1 + 1e-6));
      range += by_range;
      quick += Error(shape, values, ScaleChoice::kQuick);
      search += by_search;
    }
    EXPECT_LE(search, quick);
    EXPECT_LT(quick, range);
    if (shape.format == QuantFormat::kInt4Group) {
      EXPECT_LT(search, 0.9 * range);
    }
  }
}

TEST(ChooseScale, WhatIsImportantIsRoundedBetter) {
  std::vector<float> values = RandomValues(32, 17);
  values[3] = 0.4f;  // far outside of the others
  std::vector<float> importance(32, 1.0f);
  importance[3] = 0.0f;
  const double without = Error(kInt4, values, ScaleChoice::kSearch, importance);
  const GroupScale scale = ChooseScale(kInt4, values, {}, ScaleChoice::kSearch);
  const std::vector<float> rounded = Rounded(kInt4, scale, values);
  double with = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 3) with += std::pow(double{values[i]} - rounded[i], 2);
  }
  EXPECT_LT(without, 0.5 * with);
}

// Blocks that have given not-a-number elsewhere: all zero, tiny, all equal, one large, not finite.
TEST(ChooseScale, StaysFiniteOnDegenerateGroups) {
  std::vector<std::vector<float>> groups(6, std::vector<float>(32, 0.0f));
  groups[1].assign(32, 1e-30f);
  groups[2].assign(32, -3.0f);
  groups[3][5] = 1e5f;
  groups[4].assign(32, std::numeric_limits<float>::infinity());
  groups[5][7] = std::numeric_limits<float>::quiet_NaN();
  for (const GroupShape& shape : {kInt8, kInt4, kInt4Zero}) {
    for (const std::vector<float>& values : groups) {
      for (const ScaleChoice choice :
           {ScaleChoice::kRange, ScaleChoice::kQuick, ScaleChoice::kSearch}) {
        const GroupScale scale = ChooseScale(shape, values, {}, choice);
        for (const float value : Rounded(shape, scale, values)) EXPECT_TRUE(std::isfinite(value));
      }
    }
    EXPECT_NEAR(
        Rounded(shape, ChooseScale(shape, groups[2], {}, ScaleChoice::kSearch), groups[2])[0], -3.0,
        3e-3);
  }
}

TEST(RoundToCodes, TiesGoToTheEvenCode) {
  const GroupScale scale = {FloatToFp16(1.0f), 8};
  const std::vector<float> values = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 100.0f, -100.0f};
  std::vector<int8_t> codes(values.size());
  RoundToCodes(kInt4, scale, values, codes);
  EXPECT_EQ(codes, (std::vector<int8_t>{8, 10, 10, 8, 6, 15, 0}));
  RoundToCodes(kInt8, scale, values, codes);
  EXPECT_EQ(codes, (std::vector<int8_t>{0, 2, 2, 0, -2, 100, -100}));
  RoundToCodes(kInt8, scale, std::vector<float>(7, -1e9f), codes);
  EXPECT_EQ(codes[0], -127);  // -128 has no counterpart
}

TEST(RoundRows, FillsTilesWithALastHalfGroup) {
  constexpr int kRows = 21, kCols = 160;
  for (const GroupShape& shape :
       {GroupShape{QuantFormat::kInt4Group, 64, true}, GroupShape{QuantFormat::kInt8Group, 128}}) {
    const std::vector<float> values = RandomValues(kRows * kCols, 5);
    std::vector<std::byte> tiles(static_cast<size_t>(GroupedBytes(shape, kRows, kCols)));
    RoundRows(shape, kCols, 0, 16, values.data(), ScaleChoice::kRange, tiles);
    RoundRows(shape, kCols, 16, 5, values.data() + 16 * kCols, ScaleChoice::kRange, tiles);
    const std::vector<float> back = Dequantize(GroupedView(shape, kRows, kCols, tiles.data()));
    const double bound = shape.format == QuantFormat::kInt4Group ? 0.012 : 0.001;
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(back[i], values[i], bound) << i;
  }
}

}  // namespace
}  // namespace hadal
