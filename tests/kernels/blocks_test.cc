// GGUF's blocks in kernels: every usable set gives the values of the decoder in formats/, and the
// products that the same set gives of these values as float32, to the bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "formats/ggml_blocks.h"
#include "kernels/dispatch.h"
#include "tensor/block_layout.h"
#include "tensor/turn_blocks.h"

namespace hadal {
namespace {

struct NamedFormat {
  QuantFormat format;
  DType dtype;
};
constexpr NamedFormat kFormats[] = {
    {QuantFormat::kQ4_0, DType::kQ4_0},   {QuantFormat::kQ4_1, DType::kQ4_1},
    {QuantFormat::kQ5_0, DType::kQ5_0},   {QuantFormat::kQ5_1, DType::kQ5_1},
    {QuantFormat::kQ8_0, DType::kQ8_0},   {QuantFormat::kQ2_K, DType::kQ2_K},
    {QuantFormat::kQ3_K, DType::kQ3_K},   {QuantFormat::kQ4_K, DType::kQ4_K},
    {QuantFormat::kQ5_K, DType::kQ5_K},   {QuantFormat::kQ6_K, DType::kQ6_K},
    {QuantFormat::kIq4Nl, DType::kIq4Nl}, {QuantFormat::kIq4Xs, DType::kIq4Xs}};

// Places of the halves in a block, whose exponents must stay finite.
std::vector<int> HalvesOf(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ4_1:
    case QuantFormat::kQ5_1:
    case QuantFormat::kQ4_K:
    case QuantFormat::kQ5_K:
      return {0, 2};
    case QuantFormat::kQ2_K:
      return {80, 82};
    case QuantFormat::kQ3_K:
      return {108};
    case QuantFormat::kQ6_K:
      return {208};
    default:
      return {0};
  }
}

class Blocks : public testing::TestWithParam<std::tuple<const KernelTable*, NamedFormat>> {
 protected:
  const KernelTable& kernels() const { return *std::get<0>(GetParam()); }
  QuantFormat format() const { return std::get<1>(GetParam()).format; }
  size_t idx() const { return static_cast<size_t>(format()); }

  // Random blocks, and their values by the decoder of formats/.
  void Make(int rows, int cols) {
    rows_ = rows;
    cols_ = cols;
    const BlockSize size = SizeOfBlock(format());
    bytes_.resize(static_cast<size_t>(rows * RowBytesOf(format(), cols)) + 1);  // odd address
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random_() & 255);
    for (size_t block = 0; 1 + block + static_cast<size_t>(size.bytes) <= bytes_.size();
         block += static_cast<size_t>(size.bytes)) {
      for (const int place : HalvesOf(format())) {
        const auto half = static_cast<uint16_t>((random_() & 0x83FF) | ((8 + random_() % 6) << 10));
        std::memcpy(bytes_.data() + 1 + block + static_cast<size_t>(place), &half, 2);
      }
    }
    values_.resize(static_cast<size_t>(rows) * static_cast<size_t>(cols));
    DecodeGgmlBlocks(FindGgmlType(std::get<1>(GetParam()).dtype)->type,
                     std::span(bytes_).subspan(1), values_);
  }

  WeightRows Stored() const {
    return {.data = bytes_.data() + 1,
            .scales = nullptr,
            .scale_stride = 0,
            .first_row = 0,
            .cols = cols_};
  }
  // The stored rows, turned. REQUIRES: rows_ is a multiple of 16.
  WeightRows Turned() {
    turned_.resize(bytes_.size() - 1);
    TurnBlocks(format(), bytes_.data() + 1, rows_, cols_, turned_.data());
    WeightRows weights = Stored();
    weights.data = turned_.data();
    weights.is_turned = true;
    return weights;
  }
  WeightRows AsFloats() const {
    return {.data = values_.data(),
            .scales = nullptr,
            .scale_stride = 0,
            .first_row = 0,
            .cols = cols_};
  }
  std::vector<float> RandomFloats(int count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    return values;
  }

  std::mt19937 random_{7};
  int rows_ = 0, cols_ = 0;
  std::vector<std::byte> bytes_, turned_;
  std::vector<float> values_;
};

TEST_P(Blocks, RowsHaveTheValuesOfTheDecoder) {
  Make(5, 1536);
  for (int row = 0; row < rows_; ++row) {
    std::vector<float> out(static_cast<size_t>(cols_));
    kernels().decode_row[idx()](Stored(), row, out.data());
    for (int col = 0; col < cols_; ++col) {
      const auto i = static_cast<size_t>(col);
      ASSERT_EQ(out[i], values_[static_cast<size_t>(row * cols_) + i]) << row << " " << col;
    }
  }
}

TEST_P(Blocks, ProductsAreThoseOfTheValuesToTheBit) {
  // 1408 columns are no multiple of a span, and of 32 only.
  for (const int cols : {256, 512, 2048, SizeOfBlock(format()).elements == 32 ? 1408 : 768}) {
    Make(29, cols);
    for (const int num_rows : {1, 2, 5, 70}) {
      const std::vector<float> x = RandomFloats(num_rows * cols);
      const auto multiply = [&](QuantFormat kind, const WeightRows& weights) {
        std::vector<float> out(static_cast<size_t>(num_rows * rows_), 0.5f);
        kernels().matmul[static_cast<size_t>(kind)]({.x = x.data(),
                                                     .x_stride = cols,
                                                     .num_rows = num_rows,
                                                     .weights = weights,
                                                     .num_outputs = rows_,
                                                     .out = out.data(),
                                                     .out_stride = rows_,
                                                     .accumulate = true});
        return out;
      };
      EXPECT_EQ(multiply(format(), Stored()), multiply(QuantFormat::kF32, AsFloats()))
          << cols << " columns, " << num_rows << " rows";
    }
  }
}

TEST_P(Blocks, WeightedSumsAreThoseOfTheValuesToTheBit) {
  Make(96, 512);
  for (const int num_rows : {1, 3, 40}) {
    const std::vector<float> x = RandomFloats(num_rows * rows_);
    const auto sum = [&](QuantFormat kind, const WeightRows& weights) {
      std::vector<float> out(static_cast<size_t>(num_rows * cols_));
      kernels().weighted_sum[static_cast<size_t>(kind)]({.x = x.data(),
                                                         .x_stride = rows_,
                                                         .num_rows = num_rows,
                                                         .weights = weights,
                                                         .num_weight_rows = rows_,
                                                         .out = out.data(),
                                                         .out_stride = cols_});
      return out;
    };
    EXPECT_EQ(sum(format(), Stored()), sum(QuantFormat::kF32, AsFloats())) << num_rows;
  }
}

// Rows of floats as a set rounds them, and their products with all outputs.
class RoundedInput {
 public:
  RoundedInput(const KernelTable& kernels, QuantFormat format, const std::vector<float>& x,
               int cols)
      : kernels_(kernels),
        format_(format),
        cols_(cols),
        row_bytes_(kernels.rounded_row_bytes[RoundedIdx(format)](format, kGroup, cols)),
        num_rows_(static_cast<int>(x.size()) / cols),
        bytes_(static_cast<size_t>(num_rows_ * row_bytes_)) {
    for (int t = 0; t < num_rows_; ++t) {
      kernels.round_row[RoundedIdx(format)]({.x = x.data() + t * cols,
                                             .cols = cols,
                                             .format = format,
                                             .group_size = kGroup,
                                             .out = bytes_.data() + t * row_bytes_});
    }
  }

  std::vector<float> Multiply(WeightRows weights, int num_outputs, int first, int num_rows,
                              const int32_t* row_ids = nullptr, float start = 0) const {
    weights.group_size = kGroup;
    std::vector<float> out(static_cast<size_t>(num_rows * num_outputs), start);
    const auto product = weights.is_turned ? kernels_.turned_matmul[BlockedIdx(format_)]
                                           : kernels_.rounded_matmul[RoundedIdx(format_)];
    product({.x = bytes_.data() + first * row_bytes_,
             .row_bytes = row_bytes_,
             .row_ids = row_ids,
             .num_rows = num_rows,
             .weights = weights,
             .num_outputs = num_outputs,
             .out = out.data(),
             .out_stride = num_outputs,
             .accumulate = start != 0});
    return out;
  }

 private:
  static constexpr int kGroup = 32;

  const KernelTable& kernels_;
  QuantFormat format_;
  int cols_;
  int64_t row_bytes_;
  int num_rows_;
  std::vector<std::byte> bytes_;
};

TEST_P(Blocks, RoundedInputsAreWithinHalfAStepAndTheSameInAnyCompany) {
  for (const int cols : {256, 2048, SizeOfBlock(format()).elements == 32 ? 1408 : 768}) {
    Make(21, cols);
    constexpr int kNumRows = 7;
    const std::vector<float> x = RandomFloats(kNumRows * cols);
    const RoundedInput input(kernels(), format(), x, cols);
    const std::vector<float> all = input.Multiply(Stored(), rows_, 0, kNumRows);
    for (int t = 0; t < kNumRows; ++t) {
      const std::vector<float> alone = input.Multiply(Stored(), rows_, t, 1);
      for (int o = 0; o < rows_; ++o) {
        const auto i = static_cast<size_t>(t * rows_ + o);
        EXPECT_EQ(all[i], alone[static_cast<size_t>(o)]) << t << " " << o;
        double exact = 0, bound = 0, sum_abs = 0;
        for (int group = 0; group < cols; group += 32) {
          double largest = 0, sum = 0;
          for (int col = group; col < group + 32; ++col) {
            const double value = x[static_cast<size_t>(t * cols + col)];
            const double weight = values_[static_cast<size_t>(o * cols + col)];
            largest = std::max(largest, std::fabs(value));
            sum += std::fabs(weight);
            exact += value * weight;
            sum_abs += std::fabs(value * weight);
          }
          bound += largest / 254 * sum;
        }
        ASSERT_NEAR(all[i], exact, bound * 1.001 + 1e-4 * sum_abs) << t << " " << o;
      }
    }
  }
}

// Every set against the plain loops of the reference: any number of rows and outputs, in any order.
TEST_P(Blocks, RoundedProductsAreThoseOfTheReferenceToTheBit) {
  const KernelTable& reference = *UsableKernels().front();
  for (const int cols : {256, 512, SizeOfBlock(format()).elements == 32 ? 1408 : 768}) {
    constexpr int kNumRows = 70;
    const std::vector<float> x = RandomFloats(kNumRows * cols);
    const RoundedInput mine(kernels(), format(), x, cols), plain(reference, format(), x, cols);
    for (const int num_outputs : {1, 16, 32, 43}) {
      Make(num_outputs, cols);
      for (const int num_rows : {1, 2, 3, 4, 6, kNumRows}) {
        EXPECT_EQ(mine.Multiply(Stored(), num_outputs, 0, num_rows),
                  plain.Multiply(Stored(), num_outputs, 0, num_rows))
            << cols << " columns, " << num_outputs << " outputs, " << num_rows << " rows";
      }
      const std::vector<int32_t> ids = {5, 0, 69, 5, 33, 1, 2};
      for (const int num_rows : {2, 7}) {
        EXPECT_EQ(mine.Multiply(Stored(), num_outputs, 0, num_rows, ids.data(), 0.5f),
                  plain.Multiply(Stored(), num_outputs, 0, num_rows, ids.data(), 0.5f));
      }
    }
  }
}

TEST_P(Blocks, TurnedWeightsGiveTheBitsOfStoredOnes) {
  for (const int cols : {256, SizeOfBlock(format()).elements == 32 ? 1408 : 768}) {
    Make(80, cols);
    const WeightRows weights = Turned();
    const RoundedInput input(kernels(), format(), RandomFloats(70 * cols), cols);
    for (const int num_rows : {1, 2, 3, 4, 5, 6, 7, 70}) {
      for (const int num_outputs : {16, 48, 80}) {
        EXPECT_EQ(input.Multiply(weights, num_outputs, 0, num_rows),
                  input.Multiply(Stored(), num_outputs, 0, num_rows))
            << cols << " columns, " << num_outputs << " outputs, " << num_rows << " rows";
      }
    }
  }
}

// Where sums of 16 bits would overflow first: every code and every input at its largest.
TEST_P(Blocks, RoundedProductsAreExactAtTheLargestCodes) {
  for (const int byte : {0x00, 0x7F, 0x80, 0x88, 0xFF}) {
    Make(16, 512);
    const BlockSize size = SizeOfBlock(format());
    for (size_t i = 1; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(byte);
    constexpr uint16_t kHalf = 0x2C00;  // 0.0625
    for (size_t block = 1; block < bytes_.size(); block += static_cast<size_t>(size.bytes)) {
      for (const int place : HalvesOf(format())) {
        std::memcpy(bytes_.data() + block + static_cast<size_t>(place), &kHalf, 2);
      }
    }
    DecodeGgmlBlocks(FindGgmlType(std::get<1>(GetParam()).dtype)->type,
                     std::span(bytes_).subspan(1), values_);
    // Rows of one sign, of the other, and of both in turn; codes are 127 and the scale is 1.
    std::vector<float> x;
    for (int t = 0; t < 4; ++t) {
      for (int col = 0; col < cols_; ++col) {
        x.push_back(t == 0 || (t > 1 && col / (t == 2 ? 1 : 4) % 2 == 0) ? 127.0f : -127.0f);
      }
    }
    const RoundedInput input(kernels(), format(), x, cols_);
    for (const int num_rows : {1, 4}) {
      const std::vector<float> out = input.Multiply(Stored(), rows_, 0, num_rows);
      EXPECT_EQ(input.Multiply(Turned(), rows_, 0, num_rows), out) << "bytes " << byte;
      for (int t = 0; t < num_rows; ++t) {
        double exact = 0, sum_abs = 0;
        for (int col = 0; col < cols_; ++col) {
          const double term =
              double{x[static_cast<size_t>(t * cols_ + col)]} * values_[static_cast<size_t>(col)];
          exact += term;
          sum_abs += std::fabs(term);
        }
        ASSERT_NEAR(out[static_cast<size_t>(t * rows_)], exact, 1e-5 * sum_abs)
            << "bytes " << byte << ", row " << t;
      }
    }
  }
}

TEST_P(Blocks, ARoundedInputThatIsNotANumberStaysSo) {
  Make(16, 256);
  std::vector<float> x = RandomFloats(256);
  x[77] = std::nanf("");
  const RoundedInput input(kernels(), format(), x, 256);
  for (const float value : input.Multiply(Stored(), 16, 0, 1)) EXPECT_TRUE(std::isnan(value));
  for (const float value : input.Multiply(Turned(), 16, 0, 1)) EXPECT_TRUE(std::isnan(value));
}

INSTANTIATE_TEST_SUITE_P(Sets, Blocks,
                         testing::Combine(testing::ValuesIn(UsableKernels()),
                                          testing::ValuesIn(kFormats)),
                         [](const auto& param) {
                           std::string name(DTypeName(std::get<1>(param.param).dtype));
                           return std::string(std::get<0>(param.param)->name) + "_" + name;
                         });

}  // namespace
}  // namespace hadal
