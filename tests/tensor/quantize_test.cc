#include "tensor/quantize.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

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
