#include "formats/packed_words.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tensor/scalar.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

uint32_t Word(const Json& hex) {
  return static_cast<uint32_t>(std::stoul(hex.get<std::string>(), nullptr, 16));
}

TEST(PackedWords, UnpackTheSpecificationsWords) {
  const Json examples = ReadGoldenJson("spec/quantized.json");
  const Json& ct = examples.at("pack_compressed_tensors");
  const uint32_t ct_word = Word(ct["expected"]["uint32"]);
  for (int j = 0; j < 8; ++j) {
    const auto i = static_cast<size_t>(j);
    EXPECT_EQ(CompressedTensorsCode(ct_word, j), ct["inputs"]["q_signed"][i].get<int>()) << j;
    EXPECT_EQ(
        static_cast<float>(CompressedTensorsCode(ct_word, j)) * ct["inputs"]["scale"].get<float>(),
        ct["expected"]["dequant"][i].get<float>());
  }
  const Json& gptq = examples.at("pack_gptq");
  const uint32_t gptq_word = Word(gptq["expected"]["qweight_word"]);
  const uint32_t zeros = Word(gptq["expected"]["qzeros_word_if_8_columns_share_z"]);
  for (int j = 0; j < 8; ++j) {
    const int code = SequentialNibble(gptq_word, j) - GptqV1ZeroPoint(zeros, j);
    EXPECT_EQ(GptqV1ZeroPoint(zeros, j), gptq["inputs"]["zero_point"].get<int>());
    EXPECT_EQ(static_cast<float>(code) * gptq["inputs"]["scale"].get<float>(),
              gptq["expected"]["dequant"][static_cast<size_t>(j)].get<float>())
        << j;
  }
  const Json& awq = examples.at("pack_awq");
  const uint32_t awq_word = Word(awq["expected"]["qweight_word"]);
  for (int column = 0; column < 8; ++column) {
    const auto i = static_cast<size_t>(column);
    EXPECT_EQ(AwqNibble(awq_word, column), awq["inputs"]["q_unsigned_columns_0_7"][i].get<int>())
        << column;
  }
}

TEST(PackedWords, AZeroPointOfSixteenWrapsToZero) { EXPECT_EQ(GptqV1ZeroPoint(0xF, 0), 0); }

// C082: FP4 experts were decoded with the halves of a byte swapped.
TEST(PackedWords, Fp4HasTheEarlierElementInTheLowHalf) {
  const Json vectors = ReadGoldenJson("formats/fp4_e2m1_e8m0.json");
  const auto bytes = vectors["packed_bytes"].get<std::vector<uint8_t>>();
  const auto scales = vectors["scale_bytes"].get<std::vector<uint8_t>>();
  const auto expected = vectors["expect"].get<std::vector<float>>();
  ASSERT_EQ(expected.size(), 2 * bytes.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const float value =
        Fp4Value(bytes[i / 2], static_cast<int>(i % 2)) * E8m0ToFloat(scales[i / 32]);
    EXPECT_EQ(value, expected[i]) << i;
    EXPECT_EQ(std::signbit(value), std::signbit(expected[i])) << i;
  }
}

}  // namespace
}  // namespace hadal
