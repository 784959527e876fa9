#include "formats/ggml_blocks.h"

#include <cmath>
#include <cstring>
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

// Blocks packed from codes and scales that tell their place, as the format's description packs
// them.
class PackedBlock {
 public:
  explicit PackedBlock(size_t size) : bytes_(size) {}
  void Or(size_t at, int bits) { bytes_[at] |= static_cast<std::byte>(bits); }
  void Half(size_t at, float value) {
    const uint16_t bits = FloatToFp16(value);
    std::memcpy(bytes_.data() + at, &bits, sizeof(bits));
  }
  std::vector<float> Decode(GgmlType type) const {
    const auto info = FindGgmlType(static_cast<uint32_t>(type));
    EXPECT_EQ(static_cast<int>(bytes_.size()), info->block_bytes);
    std::vector<float> values(static_cast<size_t>(info->block_elements));
    DecodeGgmlBlocks(type, bytes_, values);
    return values;
  }

 private:
  std::vector<std::byte> bytes_;
};

TEST(GgmlBlocks, Q2KHasFourRunsToThirtyTwoBytesAndAScaleAndMinimumForSixteen) {
  const auto code = [](size_t i) { return static_cast<int>((i * 7 + i / 16) % 4); };
  const auto scale = [](size_t group) { return static_cast<int>((group * 5 + 3) % 16); };
  const auto min = [](size_t group) { return static_cast<int>((group * 11 + 1) % 16); };
  PackedBlock block(84);
  for (size_t group = 0; group < 16; ++group) block.Or(group, scale(group) | (min(group) << 4));
  for (size_t i = 0; i < 256; ++i) {
    block.Or(16 + i / 128 * 32 + i % 32, code(i) << (i % 128 / 32 * 2));
  }
  block.Half(80, 0.5f);
  block.Half(82, 0.25f);
  const std::vector<float> values = block.Decode(GgmlType::kQ2_K);
  for (size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(values[i], 0.5f * static_cast<float>(scale(i / 16) * code(i)) -
                             0.25f * static_cast<float>(min(i / 16)))
        << i;
  }
}

TEST(GgmlBlocks, Q3KHasAThirdBitInAMaskAndScalesOfSixBits) {
  const auto code = [](size_t i) { return static_cast<int>((i * 5 + i / 16) % 8); };  // 4 more
  const auto scale = [](size_t group) { return static_cast<int>((group * 13 + 7) % 64); };
  PackedBlock block(110);
  for (size_t i = 0; i < 256; ++i) {
    block.Or(i % 32, (code(i) >> 2) << (i / 32));
    block.Or(32 + i / 128 * 32 + i % 32, (code(i) & 3) << (i % 128 / 32 * 2));
  }
  for (size_t group = 0; group < 16; ++group) {
    block.Or(96 + group % 8, (scale(group) & 15) << (group / 8 * 4));
    block.Or(104 + group % 4, (scale(group) >> 4) << (group / 4 * 2));
  }
  block.Half(108, 0.5f);
  const std::vector<float> values = block.Decode(GgmlType::kQ3_K);
  for (size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(values[i], 0.5f * static_cast<float>((scale(i / 16) - 32) * (code(i) - 4))) << i;
  }
}

TEST(GgmlBlocks, NonLinearTypesLookTheirCodesUp) {
  const std::vector<int> table = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
  PackedBlock small(18);
  for (size_t j = 0; j < 16; ++j) small.Or(2 + j, static_cast<int>(j | ((15 - j) << 4)));
  small.Half(0, 0.5f);
  const std::vector<float> few = small.Decode(GgmlType::kIQ4_NL);
  for (size_t j = 0; j < 16; ++j) {
    EXPECT_EQ(few[j], 0.5f * static_cast<float>(table[j]));
    EXPECT_EQ(few[j + 16], 0.5f * static_cast<float>(table[15 - j]));
  }

  const auto scale = [](size_t run) { return static_cast<int>((run * 19 + 5) % 64); };
  PackedBlock large(136);
  for (size_t run = 0; run < 8; ++run) {
    large.Or(2 + run / 4, (scale(run) >> 4) << (run % 4 * 2));
    large.Or(4 + run / 2, (scale(run) & 15) << (run % 2 * 4));
    for (size_t j = 0; j < 16; ++j) {
      large.Or(8 + 16 * run + j, static_cast<int>((j + run) % 16 | ((15 - j) << 4)));
    }
  }
  large.Half(0, 0.25f);
  const std::vector<float> values = large.Decode(GgmlType::kIQ4_XS);
  for (size_t run = 0; run < 8; ++run) {
    const float step = 0.25f * static_cast<float>(scale(run) - 32);
    for (size_t j = 0; j < 16; ++j) {
      EXPECT_EQ(values[32 * run + j], step * static_cast<float>(table[(j + run) % 16]));
      EXPECT_EQ(values[32 * run + 16 + j], step * static_cast<float>(table[15 - j]));
    }
  }
}

TEST(GgmlBlocks, TypesThatCannotBeReadHaveNames) {
  EXPECT_EQ(GgmlTypeName(18), "IQ3_XXS");
  EXPECT_EQ(GgmlTypeName(39), "MXFP4");
  EXPECT_EQ(GgmlTypeName(12), "Q4_K");
  EXPECT_EQ(GgmlTypeName(12345), "");
}

}  // namespace
}  // namespace hadal
