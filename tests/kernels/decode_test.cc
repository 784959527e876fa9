#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/dispatch.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/guarded.h"
#include "tests/kernels/stored_weight.h"

namespace hadal::testing {
namespace {

class DecodeRow : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  Guarded<float> Decode(const StoredWeight& w, int row) const {
    Guarded<float> out(w.cols());
    GetParam()->decode_row[static_cast<int>(w.format())](w.Rows(), row, out.data());
    return out;
  }
  Random random_{3};
};

TEST_P(DecodeRow, KnowsEveryCodeOfSixteenBits) {
  for (QuantFormat format : {QuantFormat::kBF16, QuantFormat::kF16}) {
    StoredWeight w(format, 1, 65536, &random_);
    for (int i = 0; i < 65536; ++i) w.SetCode(0, i, static_cast<uint16_t>(i));
    const Guarded<float> out = Decode(w, 0);
    for (int i = 0; i < 65536; ++i) {
      ASSERT_TRUE(SameBits(out[i], w.At(0, i))) << FormatName(format) << " code " << i;
    }
  }
}

TEST_P(DecodeRow, KnowsEveryCodeOfE4m3) {
  StoredWeight w(QuantFormat::kF8Block128, 1, 256, &random_);
  for (int i = 0; i < 256; ++i) w.SetCode(0, i, static_cast<uint8_t>(i));
  w.SetScale(0, 1.0f);
  w.SetScale(1, 1.0f);
  const Guarded<float> out = Decode(w, 0);
  for (int i = 0; i < 256; ++i)
    ASSERT_TRUE(SameBits(out[i], E4m3ToFloat(static_cast<uint8_t>(i)))) << i;
  EXPECT_EQ(out[0x7E], 448.0f);
  EXPECT_EQ(out[0x01], 0x1p-9f);
  EXPECT_TRUE(std::isnan(out[0x7F]));
  EXPECT_TRUE(std::isnan(out[0xFF]));
  EXPECT_TRUE(std::signbit(out[0x80]));
}

TEST_P(DecodeRow, ReadsAnyRowOfAnyWidth) {
  for (QuantFormat format : kAllFormats) {
    for (int cols : {1, 7, 8, 9, 15, 16, 17, 31, 33, 127, 128, 129, 200, 1408}) {
      const StoredWeight w(format, 3, cols, &random_, 126);
      for (int row = 0; row < 3; ++row) {
        const Guarded<float> out = Decode(w, row);
        for (int c = 0; c < cols; ++c) {
          ASSERT_TRUE(SameBits(out[c], w.At(row, c)))
              << FormatName(format) << ", row " << row << ", column " << c << " of " << cols;
        }
      }
    }
  }
}

TEST_P(DecodeRow, MultipliesByAnyScaleWithOneRounding) {
  for (float scale :
       {0.0f, 1e-45f, 1e-40f, 1e-38f, 0.3f, 1e36f, 3e38f, std::numeric_limits<float>::infinity()}) {
    StoredWeight w(QuantFormat::kF8Block128, 1, 128, &random_);
    for (int i = 0; i < 128; ++i) w.SetCode(0, i, static_cast<uint8_t>(i));
    w.SetScale(0, scale);
    const Guarded<float> out = Decode(w, 0);
    for (int i = 0; i < 128; ++i) ASSERT_TRUE(SameBits(out[i], w.At(0, i))) << scale << ", " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, DecodeRow,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& param_info) {
                           return std::string(param_info.param->name);
                         });

}  // namespace
}  // namespace hadal::testing
