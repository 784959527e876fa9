#include "tensor/quantize.h"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tensor/scalar.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

// An FP8 matrix in which every block has its own scale and all codes mean 1.
struct OnesInBlocks {
  static constexpr int kRows = 300, kCols = 130;  // ragged both ways: 3 x 2 blocks
  std::vector<uint8_t> codes = std::vector<uint8_t>(kRows * kCols, 0x38);
  std::array<float, 6> scales = {1, 2, 3, 4, 5, 6};

  QuantizedMatrix matrix() const {
    return {.format = QuantFormat::kF8Block128,
            .rows = kRows,
            .cols = kCols,
            .data = reinterpret_cast<const std::byte*>(codes.data()),
            .scales = reinterpret_cast<const std::byte*>(scales.data()),
            .scale_stride = 2};
  }
};

TEST(Quantize, EachElementGetsTheScaleOfItsOwnBlock) {
  const OnesInBlocks ones;
  const QuantizedMatrix matrix = ones.matrix();
  EXPECT_EQ(ElementAt(matrix, 0, 0), 1);
  EXPECT_EQ(ElementAt(matrix, 127, 127), 1);
  EXPECT_EQ(ElementAt(matrix, 127, 128), 2);
  EXPECT_EQ(ElementAt(matrix, 128, 127), 3);
  EXPECT_EQ(ElementAt(matrix, 255, 129), 4);
  EXPECT_EQ(ElementAt(matrix, 256, 0), 5);
  EXPECT_EQ(ElementAt(matrix, 299, 129), 6);
}

// The example has blocks of 2 x 2; element (r, c) of it stands where (r, c) stand in blocks of 128.
TEST(Quantize, AgreesWithTheSpecificationsRaggedBlocks) {
  const Json example = ReadGoldenJson("spec/number_formats.json").at("fp8_block_dequant");
  const Json &inputs = example["inputs"], &expected = example["expected"];
  const int block = inputs["block"][0];
  ASSERT_EQ(inputs["block"], Json::array({2, 2}));
  const auto spread = [&](size_t i) {
    return 128 * (static_cast<int>(i) / block) + static_cast<int>(i) % block;
  };
  const int rows = spread(inputs["codes"].size() - 1) + 1;
  const int cols = spread(inputs["codes"][0].size() - 1) + 1;
  std::vector<uint8_t> codes(static_cast<size_t>(rows * cols));
  std::vector<float> scales;
  for (const Json& row : inputs["weight_scale_inv"]) {
    for (const Json& scale : row) scales.push_back(scale.get<float>());
  }
  for (size_t r = 0; r < inputs["codes"].size(); ++r) {
    for (size_t c = 0; c < inputs["codes"][r].size(); ++c) {
      codes[static_cast<size_t>(spread(r) * cols + spread(c))] =
          static_cast<uint8_t>(std::stoi(inputs["codes"][r][c].get<std::string>(), nullptr, 16));
    }
  }
  const QuantizedMatrix matrix = {
      .format = QuantFormat::kF8Block128,
      .rows = rows,
      .cols = cols,
      .data = reinterpret_cast<const std::byte*>(codes.data()),
      .scales = reinterpret_cast<const std::byte*>(scales.data()),
      .scale_stride = static_cast<int>(inputs["weight_scale_inv"][0].size())};
  for (size_t r = 0; r < expected.size(); ++r) {
    for (size_t c = 0; c < expected[r].size(); ++c) {
      EXPECT_EQ(ElementAt(matrix, spread(r), spread(c)), expected[r][c].get<float>())
          << "row " << r << " column " << c;
    }
  }
}

TEST(Quantize, RowsOfAnFp8MatrixKeepTheirScales) {
  const OnesInBlocks ones;
  const QuantizedMatrix part = ones.matrix().Rows(100, 100).Rows(20, 80);
  EXPECT_EQ(part.rows, 80);
  EXPECT_EQ(ElementAt(part, 7, 0), 1);  // row 127
  EXPECT_EQ(ElementAt(part, 8, 0), 3);  // row 128
  EXPECT_EQ(ElementAt(part, 79, 129), 4);
  EXPECT_EQ(Dequantize(part).size(), 80u * 130u);
}

TEST(Quantize, PlainFormatsAreReadAtAnyAlignment) {
  const std::array<uint16_t, 4> values = {FloatToBf16(1.5f), FloatToBf16(-2.0f), FloatToFp16(0.25f),
                                          FloatToFp16(-65504.0f)};
  std::vector<std::byte> bytes(9);
  std::memcpy(bytes.data() + 1, values.data(), 8);
  QuantizedMatrix matrix = {
      .format = QuantFormat::kBF16, .rows = 1, .cols = 2, .data = bytes.data() + 1};
  EXPECT_EQ(Dequantize(matrix), (std::vector<float>{1.5f, -2.0f}));
  matrix.format = QuantFormat::kF16;
  matrix.data += 4;
  EXPECT_EQ(Dequantize(matrix), (std::vector<float>{0.25f, -65504.0f}));
  const float one = 3.0f;
  std::memcpy(bytes.data() + 1, &one, 4);
  matrix = {.format = QuantFormat::kF32, .rows = 1, .cols = 1, .data = bytes.data() + 1};
  EXPECT_EQ(ElementAt(matrix, 0, 0), 3.0f);
}

}  // namespace
}  // namespace hadal
