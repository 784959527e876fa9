#include "convert/feedback_rounder.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tensor/group_tiles.h"
#include "tensor/quantize.h"

namespace hadal {
namespace {

constexpr int kRows = 24, kCols = 96;
constexpr GroupShape kShape = {QuantFormat::kInt4Group, 32, false};

struct Case {
  std::unique_ptr<Backend> backend;
  ThreadPool pool{2};
  InputMoments moments{kCols};
  std::vector<float> inputs, weights;
};

// Inputs whose columns hang together, as those of a model do.
std::unique_ptr<Case> MakeCase() {
  auto c = std::make_unique<Case>();
  c->backend = CreateBackend({.num_threads = 2, .kernels = {}}).value();
  constexpr int kInputs = 300, kHidden = 20;
  c->inputs.resize(kInputs * kCols);
  for (size_t row = 0; row < kInputs; ++row) {
    for (size_t col = 0; col < kCols; ++col) {
      double value = 0.3 * (RandomUnit(1, row * kCols + col) - 0.5);
      for (size_t h = 0; h < kHidden; ++h) {
        value += (RandomUnit(2, row * kHidden + h) - 0.5) * (RandomUnit(3, h * kCols + col) - 0.5);
      }
      c->inputs[row * kCols + col] = static_cast<float>(value);
    }
  }
  c->moments.Add({c->inputs.data(), kInputs, kCols, kCols}, c->backend.get());
  c->weights.resize(kRows * kCols);
  for (size_t i = 0; i < c->weights.size(); ++i) {
    c->weights[i] = static_cast<float>(0.1 * (RandomUnit(4, i) + RandomUnit(5, i) - 1.0));
  }
  return c;
}

// What the error of the rounded weights does to the outputs: sum of squares over all inputs.
double OutputError(const Case& c, const std::vector<std::byte>& tiles, const GroupShape& shape) {
  const std::vector<float> rounded = Dequantize(GroupedView(shape, kRows, kCols, tiles.data()));
  double total = 0.0;
  for (size_t input = 0; input < c.inputs.size() / kCols; ++input) {
    for (size_t row = 0; row < kRows; ++row) {
      double out = 0.0;
      for (size_t col = 0; col < kCols; ++col) {
        out += (double{rounded[row * kCols + col]} - c.weights[row * kCols + col]) *
               c.inputs[input * kCols + col];
      }
      total += out * out;
    }
  }
  return total;
}

std::vector<std::byte> NewTiles(const GroupShape& shape) {
  return std::vector<std::byte>(static_cast<size_t>(GroupedBytes(shape, kRows, kCols)));
}

std::vector<std::byte> WithFeedback(Case* c, const GroupShape& shape, int num_sweeps) {
  FeedbackRounder rounder(c->moments, {.damping = 0.01, .num_sweeps = num_sweeps}, c->backend.get(),
                          &c->pool);
  std::vector<std::byte> tiles = NewTiles(shape);
  rounder.Round(shape, 0, 16, c->weights.data(), tiles);
  rounder.Round(shape, 16, kRows - 16, c->weights.data() + 16 * kCols, tiles);
  return tiles;
}

class FeedbackShapes : public testing::TestWithParam<GroupShape> {};

TEST_P(FeedbackShapes, ErrorsOfTheOutputsAreFarBelowThoseOfPlainRounding) {
  const std::unique_ptr<Case> c = MakeCase();
  const GroupShape shape = GetParam();
  std::vector<std::byte> plain = NewTiles(shape);
  RoundRows(shape, kCols, 0, kRows, c->weights.data(), ScaleChoice::kSearch, plain);
  const double plain_error = OutputError(*c, plain, shape);
  const double feedback_error = OutputError(*c, WithFeedback(c.get(), shape, 0), shape);
  const double swept_error = OutputError(*c, WithFeedback(c.get(), shape, 2), shape);
  EXPECT_LT(feedback_error, 0.6 * plain_error);
  EXPECT_LT(swept_error, feedback_error);
}

INSTANTIATE_TEST_SUITE_P(Shapes, FeedbackShapes,
                         testing::Values(GroupShape{QuantFormat::kInt4Group, 32, false},
                                         GroupShape{QuantFormat::kInt4Group, 64, true},
                                         GroupShape{QuantFormat::kInt4Group, 128, false},
                                         GroupShape{QuantFormat::kInt8Group, 64, false}));

TEST(FeedbackRounder, InputsThatWereNeverSeenGiveAPlainRounding) {
  const std::unique_ptr<Case> c = MakeCase();
  FeedbackRounder rounder(InputMoments(kCols), {}, c->backend.get(), &c->pool);
  std::vector<std::byte> tiles = NewTiles(kShape), plain = tiles;
  rounder.Round(kShape, 0, kRows, c->weights.data(), tiles);
  RoundRows(kShape, kCols, 0, kRows, c->weights.data(), ScaleChoice::kSearch, plain);
  EXPECT_LE(OutputError(*c, tiles, kShape), 1.02 * OutputError(*c, plain, kShape));
}

TEST(FeedbackRounder, TheNumberOfThreadsChangesNothing) {
  const std::unique_ptr<Case> c = MakeCase();
  const std::vector<std::byte> two = WithFeedback(c.get(), kShape, 2);
  ThreadPool alone(1);
  FeedbackRounder rounder(c->moments, {.damping = 0.01, .num_sweeps = 2}, c->backend.get(), &alone);
  std::vector<std::byte> one = NewTiles(kShape);
  rounder.Round(kShape, 0, kRows, c->weights.data(), one);
  EXPECT_EQ(one, two);  // nor do the chunks in which rows come
}

TEST(FeedbackRounder, ZeroWeightsStayZero) {
  const std::unique_ptr<Case> c = MakeCase();
  std::ranges::fill(c->weights, 0.0f);
  const std::vector<std::byte> tiles = WithFeedback(c.get(), kShape, 1);
  for (const float value : Dequantize(GroupedView(kShape, kRows, kCols, tiles.data()))) {
    EXPECT_EQ(value, 0.0f);
  }
}

TEST(InputMoments, AreTheProductsOfColumns) {
  const std::unique_ptr<Backend> backend = CreateBackend({.num_threads = 1, .kernels = {}}).value();
  InputMoments moments(2);
  const std::vector<float> first = {1, 2, 3, 4}, second = {-1, 1};
  moments.Add({first.data(), 2, 2, 2}, backend.get());
  moments.Add({second.data(), 1, 2, 2}, backend.get());
  EXPECT_EQ(moments.num_rows(), 3);
  const ConstFloatMatrix matrix = std::as_const(moments).matrix();
  EXPECT_FLOAT_EQ(matrix.row(0)[0], 11.0f);
  EXPECT_FLOAT_EQ(matrix.row(0)[1], 13.0f);
  EXPECT_FLOAT_EQ(matrix.row(1)[0], 13.0f);
  EXPECT_FLOAT_EQ(matrix.row(1)[1], 21.0f);
  InputMoments blended(2);
  blended.Add({second.data(), 1, 2, 2}, backend.get());
  blended.Blend(moments, 0.5);  // 1 row of its own against 3: a sixth
  EXPECT_NEAR(std::as_const(blended).matrix().row(0)[0], 1.0 + 11.0 / 6.0, 1e-5);
}

}  // namespace
}  // namespace hadal
