#include "formats/ggml_blocks.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

std::vector<std::byte> FromHex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(GgmlBlocks, DecodeTheSpecificationsBlocks) {
  const Json examples = ReadGoldenJson("spec/quantized.json");
  const std::vector<std::pair<std::string, GgmlType>> blocks = {
      {"block_q4_0", GgmlType::kQ4_0}, {"block_q4_1", GgmlType::kQ4_1},
      {"block_q5_0", GgmlType::kQ5_0}, {"block_q8_0", GgmlType::kQ8_0},
      {"block_q4_k", GgmlType::kQ4_K}, {"block_q5_k", GgmlType::kQ5_K},
      {"block_q6_k", GgmlType::kQ6_K}};
  for (const auto& [name, type] : blocks) {
    const Json& expected = examples.at(name)["expected"];
    const std::vector<std::byte> bytes = FromHex(examples.at(name)["inputs"]["hex"]);
    const auto info = FindGgmlType(static_cast<uint32_t>(type));
    ASSERT_TRUE(info.has_value()) << name;
    ASSERT_EQ(static_cast<int>(bytes.size()), info->block_bytes) << name;
    std::vector<float> values(static_cast<size_t>(info->block_elements));
    DecodeGgmlBlocks(type, bytes, values);
    if (!expected["values"].is_null()) {
      EXPECT_EQ(values, expected["values"].get<std::vector<float>>()) << name;
    }
    for (size_t i = 0; i < expected["first_8"].size(); ++i) {
      EXPECT_EQ(values[i], expected["first_8"][i].get<float>()) << name << " " << i;
    }
    for (const auto& [index, value] : expected["at"].items()) {
      EXPECT_EQ(values[std::stoul(index)], value.get<float>()) << name << " at " << index;
    }
    double sum = 0, sum_abs = 0;
    for (const float value : values) {
      sum += value;
      sum_abs += std::fabs(value);
    }
    EXPECT_EQ(sum, expected["sum"].get<double>()) << name;
    EXPECT_EQ(sum_abs, expected["sum_abs"].get<double>()) << name;
  }
}

TEST(GgmlBlocks, UnpackTheSixBitPairs) {
  const Json example = ReadGoldenJson("spec/quantized.json").at("q4_k_scales");
  const std::vector<std::byte> packed = FromHex(example["inputs"]["scale_bytes"]);
  for (int j = 0; j < 8; ++j) {
    const ScaleAndMin pair = UnpackScaleAndMin(reinterpret_cast<const uint8_t*>(packed.data()), j);
    const Json& expected = example["expected"][static_cast<size_t>(j)];
    EXPECT_EQ(pair.scale, expected[0].get<int>()) << j;
    EXPECT_EQ(pair.min, expected[1].get<int>()) << j;
  }
}

TEST(GgmlBlocks, EncodeAsTheCommonToolsDo) {
  const Json examples = ReadGoldenJson("spec/quantized.json");
  std::vector<float> x = examples.at("quantise_q4_0")["inputs"]["x"].get<std::vector<float>>();
  ASSERT_EQ(x.size(), 32u);
  std::vector<std::byte> q4(18), q8(34);
  EncodeQ4_0(std::span<const float, 32>(x), std::span<std::byte, 18>(q4));
  EXPECT_EQ(q4, FromHex(examples.at("quantise_q4_0")["expected"]["hex"]));
  x = examples.at("quantise_q8_0")["inputs"]["x"].get<std::vector<float>>();
  EncodeQ8_0(std::span<const float, 32>(x), std::span<std::byte, 34>(q8));
  EXPECT_EQ(q8, FromHex(examples.at("quantise_q8_0")["expected"]["hex"]));
}

TEST(GgmlBlocks, KnowOnlyTheTypesThatTheyDecode) {
  EXPECT_FALSE(FindGgmlType(4).has_value());
  EXPECT_FALSE(FindGgmlType(0xFFFFFFFF).has_value());
}

}  // namespace
}  // namespace hadal
