// Activations rounded to bytes and their products with grouped weights.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include "kernels/dispatch.h"
#include "tensor/group_tiles.h"
#include "tensor/quantize.h"
#include "tensor/scalar.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/guarded.h"

namespace hadal::testing {
namespace {

// A grouped weight of random codes, scales and zero points, guarded behind its last byte.
class GroupedWeight {
 public:
  GroupedWeight(const GroupShape& shape, int rows, int cols, Random* random)
      : shape_(shape), rows_(rows), cols_(cols), bytes_(GroupedBytes(shape, rows, cols)) {
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0});
    const bool is_int4 = shape.format == QuantFormat::kInt4Group;
    std::uniform_int_distribution<int> code(is_int4 ? 0 : -127, is_int4 ? 15 : 127), zero(0, 15);
    std::uniform_real_distribution<float> scale(0.001f, 0.02f);
    for (int row = 0; row < rows; ++row) {
      for (int g = 0; g < NumGroups(shape, cols); ++g) {
        std::vector<int8_t> codes(static_cast<size_t>(SpanOfGroup(shape, cols, g).size));
        for (int8_t& c : codes) c = static_cast<int8_t>(code(*random));
        StoreGroup(shape, cols, row, g,
                   {.codes = codes,
                    .scale_bits = FloatToFp16(scale(*random)),
                    .zero_point = shape.has_zero_points ? zero(*random) : 8},
                   {bytes_.data(), static_cast<size_t>(bytes_.size())});
      }
    }
  }
  QuantizedMatrix view() const { return GroupedView(shape_, rows_, cols_, bytes_.data()); }
  const GroupShape& shape() const { return shape_; }
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  int num_groups() const { return NumGroups(shape_, cols_); }
  // Rows [first, ..) for a kernel.
  WeightRows Rows(int first = 0) const {
    return {.data = view().data + view().OffsetOfRow(first),
            .scales = nullptr,
            .scale_stride = 0,
            .first_row = first,
            .cols = cols_,
            .group_size = shape_.group_size,
            .has_zero_points = shape_.has_zero_points};
  }

 private:
  GroupShape shape_;
  int rows_, cols_;
  Guarded<std::byte> bytes_;
};

// Rounded rows, guarded.
struct RoundedRows {
  int64_t row_bytes;
  Guarded<std::byte> bytes;

  RoundedRows(const KernelTable& kernels, const float* x, int num_rows, int cols,
              const GroupShape& shape)
      : row_bytes(kernels.rounded_row_bytes[RoundedIdx(shape.format)](shape.format,
                                                                      shape.group_size, cols)),
        bytes(num_rows * row_bytes) {
    for (int t = 0; t < num_rows; ++t) {
      kernels.round_row[RoundedIdx(shape.format)]({.x = x + int64_t{t} * cols,
                                                   .cols = cols,
                                                   .format = shape.format,
                                                   .group_size = shape.group_size,
                                                   .out = bytes.data() + t * row_bytes});
    }
  }
};

struct Picked {
  const int32_t* row_ids = nullptr;
  int first_output = 0, num_outputs = -1;
};

Guarded<float> Product(const KernelTable& kernels, const RoundedRows& x, int num_rows,
                       const GroupedWeight& w, const Picked& picked = {}) {
  const int num_outputs =
      picked.num_outputs < 0 ? w.rows() - picked.first_output : picked.num_outputs;
  Guarded<float> out(int64_t{num_rows} * num_outputs);
  std::fill(out.begin(), out.end(), std::numeric_limits<float>::infinity());
  kernels.rounded_matmul[RoundedIdx(w.shape().format)]({.x = x.bytes.data(),
                                                        .row_bytes = x.row_bytes,
                                                        .row_ids = picked.row_ids,
                                                        .num_rows = num_rows,
                                                        .weights = w.Rows(picked.first_output),
                                                        .num_outputs = num_outputs,
                                                        .out = out.data(),
                                                        .out_stride = num_outputs,
                                                        .accumulate = false});
  return out;
}

class Grouped : public ::testing::TestWithParam<std::tuple<const KernelTable*, GroupShape>> {
 protected:
  const KernelTable& kernels() const { return *std::get<0>(GetParam()); }
  const GroupShape& shape() const { return std::get<1>(GetParam()); }
  Random random_{20240507};
};

// |x - rounded x| is at most half a step of x's group; sums of exact groups add float rounding.
TEST_P(Grouped, ProductStaysWithinTheStepsOfTheRoundedRows) {
  for (int cols : {32, 64, 96, 160, 352}) {
    const GroupedWeight w(shape(), 21, cols, &random_);
    const std::vector<float> values = Dequantize(w.view());
    const Guarded<float> x = RandomFloats(int64_t{3} * cols, &random_);
    const RoundedRows rounded(kernels(), x.data(), 3, cols, shape());
    const Guarded<float> out = Product(kernels(), rounded, 3, w);
    for (int t = 0; t < 3; ++t) {
      const float* row = x.data() + int64_t{t} * cols;
      for (int o = 0; o < w.rows(); ++o) {
        double sum = 0, bound = 0;
        for (int i = 0; i < cols; ++i) {
          const float* group = row + i / shape().group_size * shape().group_size;
          const float* end = std::min(group + shape().group_size, row + cols);
          float largest = 0;
          for (const float* at = group; at < end; ++at) largest = std::max(largest, std::abs(*at));
          const double value = values[static_cast<size_t>(o * cols + i)];
          sum += double{row[i]} * value;
          bound += (0.5001 * largest / 127 + 1e-5 * std::abs(row[i])) * std::abs(value);
        }
        ASSERT_NEAR(out[int64_t{t} * w.rows() + o], sum, bound)
            << cols << " columns, row " << t << ", output " << o;
      }
    }
  }
}

// Codes that are whole numbers survive rounding, so the product is known to the bit.
TEST_P(Grouped, ProductOfWholeNumbersIsExact) {
  constexpr int kCols = 160;
  const GroupedWeight w(shape(), 32, kCols, &random_);
  std::vector<float> x(kCols);
  std::uniform_int_distribution<int> whole(-127, 127);
  for (float& value : x) value = static_cast<float>(whole(random_));
  for (size_t i = 0; i < x.size(); i += 32) x[i] = i % 64 == 0 ? 127.0f : -127.0f;
  const RoundedRows rounded(kernels(), x.data(), 1, kCols, shape());
  const Guarded<float> out = Product(kernels(), rounded, 1, w);
  const std::vector<float> values = Dequantize(w.view());
  for (int o = 0; o < w.rows(); ++o) {
    double sum = 0, magnitude = 0;
    for (int i = 0; i < kCols; ++i) {
      const double term =
          double{x[static_cast<size_t>(i)]} * values[static_cast<size_t>(o * kCols + i)];
      sum += term;
      magnitude += std::abs(term);
    }
    ASSERT_NEAR(out[o], sum, 12 * 0x1p-24 * magnitude) << o;
  }
}

TEST_P(Grouped, ProductEqualsTheReferenceToTheBit) {
  const KernelTable& reference = *UsableKernels().front();
  for (int cols : {32, 96, 256, 544, 1408}) {
    for (int num_rows : {1, 2, 3, 4, 5, 6, 9, 17, 131}) {
      // Two, three, and seven tiles: sets take up to four at a time.
      const GroupedWeight w(shape(),
                            num_rows < 4        ? 109
                            : num_rows % 2 == 0 ? 32
                                                : 45,
                            cols, &random_);
      Guarded<float> x = RandomFloats(int64_t{num_rows} * cols, &random_);
      for (int i = 0; i < 32; ++i) x[i] = 0.0f;
      const RoundedRows rounded(kernels(), x.data(), num_rows, cols, shape());
      const RoundedRows expected_rows(reference, x.data(), num_rows, cols, shape());
      const Guarded<float> out = Product(kernels(), rounded, num_rows, w);
      const Guarded<float> expected = Product(reference, expected_rows, num_rows, w);
      ASSERT_TRUE(SameBits(out.data(), expected.data(), out.size()))
          << num_rows << " rows, " << cols << " columns";
    }
  }
}

TEST_P(Grouped, NanAndInfinityOfARowReachItsOutputs) {
  constexpr int kCols = 256;
  const GroupedWeight w(shape(), 16, kCols, &random_);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Guarded<float> x = RandomFloats(kCols, &random_);
    x[200] = bad;
    const RoundedRows rounded(kernels(), x.data(), 1, kCols, shape());
    const Guarded<float> out = Product(kernels(), rounded, 1, w);
    for (const float value : out) EXPECT_FALSE(std::isfinite(value));
    // Infinity keeps the sign that its codes give it.
    const RoundedRows expected_rows(*UsableKernels().front(), x.data(), 1, kCols, shape());
    const Guarded<float> expected = Product(*UsableKernels().front(), expected_rows, 1, w);
    for (int64_t o = 0; o < out.size(); ++o) {
      const float value = out.data()[o], wanted = expected.data()[o];
      EXPECT_TRUE(value == wanted || (std::isnan(value) && std::isnan(wanted)))
          << value << " " << wanted;
    }
  }
}

TEST_P(Grouped, RowsHaveTheSameBitsAloneTogetherAndPicked) {
  constexpr int kRows = 13, kCols = 288;
  const GroupedWeight w(shape(), 48, kCols, &random_);
  const Guarded<float> x = RandomFloats(int64_t{kRows} * kCols, &random_);
  const RoundedRows rounded(kernels(), x.data(), kRows, kCols, shape());
  const Guarded<float> all = Product(kernels(), rounded, kRows, w);
  for (int32_t t = 0; t < kRows; ++t) {
    const Guarded<float> alone = Product(kernels(), rounded, 1, w, {.row_ids = &t});
    ASSERT_TRUE(SameBits(alone.data(), all.data() + int64_t{t} * w.rows(), w.rows())) << t;
  }
  const std::vector<int32_t> ids = {12, 0, 7, 7, 3, 11};
  const Guarded<float> picked = Product(kernels(), rounded, 6, w, {.row_ids = ids.data()});
  for (size_t t = 0; t < ids.size(); ++t) {
    ASSERT_TRUE(SameBits(picked.data() + static_cast<int64_t>(t) * w.rows(),
                         all.data() + int64_t{ids[t]} * w.rows(), w.rows()))
        << t;
  }
  const Guarded<float> part =
      Product(kernels(), rounded, kRows, w, {.first_output = 16, .num_outputs = 19});
  for (int t = 0; t < kRows; ++t) {
    ASSERT_TRUE(SameBits(part.data() + int64_t{t} * 19, all.data() + int64_t{t} * 48 + 16, 19));
  }
}

TEST_P(Grouped, LargestCodesDoNotOverflow) {
  constexpr int kCols = 256;
  std::vector<std::byte> bytes(static_cast<size_t>(GroupedBytes(shape(), 16, kCols)));
  const bool is_int4 = shape().format == QuantFormat::kInt4Group;
  const std::vector<int8_t> codes(static_cast<size_t>(shape().group_size), is_int4 ? 15 : 127);
  for (int row = 0; row < 16; ++row) {
    for (int g = 0; g < NumGroups(shape(), kCols); ++g) {
      StoreGroup(shape(), kCols, row, g,
                 {.codes = codes,
                  .scale_bits = FloatToFp16(1.0f),
                  .zero_point = shape().has_zero_points ? 0 : 8},
                 bytes);
    }
  }
  const QuantizedMatrix view = GroupedView(shape(), 16, kCols, bytes.data());
  const int code = is_int4 ? (shape().has_zero_points ? 15 : 7) : 127;
  for (const float x : {127.0f, -127.0f}) {
    const std::vector<float> row(kCols, x);
    const RoundedRows rounded(kernels(), row.data(), 1, kCols, shape());
    std::vector<float> out(16);
    kernels().rounded_matmul[RoundedIdx(shape().format)](
        {.x = rounded.bytes.data(),
         .row_bytes = rounded.row_bytes,
         .row_ids = nullptr,
         .num_rows = 1,
         .weights = {.data = view.data,
                     .scales = nullptr,
                     .scale_stride = 0,
                     .first_row = 0,
                     .cols = kCols,
                     .group_size = shape().group_size,
                     .has_zero_points = shape().has_zero_points},
         .num_outputs = 16,
         .out = out.data(),
         .out_stride = 16,
         .accumulate = false});
    for (const float value : out) ASSERT_EQ(value, x * static_cast<float>(code * kCols));
  }
}

TEST_P(Grouped, FloatProductsAndDecodingReadTheSameValues) {
  constexpr int kCols = 224;
  const GroupedWeight w(shape(), 37, kCols, &random_);
  const std::vector<float> values = Dequantize(w.view());
  const auto format = static_cast<size_t>(shape().format);
  std::vector<float> row(kCols);
  for (int o : {0, 9, 36}) {
    kernels().decode_row[format](w.Rows(), o, row.data());
    ASSERT_TRUE(SameBits(row.data(), values.data() + o * kCols, kCols)) << o;
  }
  const Guarded<float> x = RandomFloats(int64_t{5} * kCols, &random_);
  const auto product = [&](const KernelTable& table) {
    Guarded<float> out(5 * 37);
    table.matmul[format]({.x = x.data(),
                          .x_stride = kCols,
                          .num_rows = 5,
                          .weights = w.Rows(),
                          .num_outputs = 37,
                          .out = out.data(),
                          .out_stride = 37,
                          .accumulate = false});
    return out;
  };
  const Guarded<float> out = product(kernels()), expected = product(*UsableKernels().front());
  ASSERT_TRUE(SameBits(out.data(), expected.data(), out.size()));
  double sum = 0;
  for (int i = 0; i < kCols; ++i) sum += double{x[i]} * values[static_cast<size_t>(3 * kCols + i)];
  ASSERT_NEAR(out[3], sum, 1e-4);
}

std::string NameOf(const ::testing::TestParamInfo<Grouped::ParamType>& param) {
  const GroupShape& shape = std::get<1>(param.param);
  return std::string(std::get<0>(param.param)->name) +
         (shape.format == QuantFormat::kInt4Group ? "Int4" : "Int8") + "Group" +
         std::to_string(shape.group_size) + (shape.has_zero_points ? "Zero" : "");
}

INSTANTIATE_TEST_SUITE_P(
    AllSets, Grouped,
    ::testing::Combine(::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                       ::testing::Values(GroupShape{QuantFormat::kInt8Group, 32, false},
                                         GroupShape{QuantFormat::kInt8Group, 128, false},
                                         GroupShape{QuantFormat::kInt4Group, 32, false},
                                         GroupShape{QuantFormat::kInt4Group, 32, true},
                                         GroupShape{QuantFormat::kInt4Group, 64, false},
                                         GroupShape{QuantFormat::kInt4Group, 64, true},
                                         GroupShape{QuantFormat::kInt4Group, 128, true})),
    NameOf);

}  // namespace
}  // namespace hadal::testing
