#include "tensor/scalar.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace hadal {
namespace {

Json Example(const char* id) { return ReadGoldenJson("spec/number_formats.json")[id]["expected"]; }

uint32_t FromHex(const std::string& text) {
  return static_cast<uint32_t>(std::stoul(text, nullptr, 16));
}

// The same value and the same sign, or both NaN.
void ExpectSame(float found, const Json& expected) {
  if (!expected.is_number()) {
    EXPECT_TRUE(std::isnan(found)) << found;
    return;
  }
  EXPECT_EQ(found, expected.get<float>());
  EXPECT_EQ(std::signbit(found), std::signbit(expected.get<double>()));
}

// C080.
TEST(Scalar, All256E4m3CodesAreThoseOfTheTable) {
  const Json table = ReadGoldenJson("formats/e4m3fn_table.json")["values"];
  ASSERT_EQ(table.size(), 256u);
  for (size_t code = 0; code < 256; ++code) {
    SCOPED_TRACE(code);
    ExpectSame(E4m3ToFloat(static_cast<uint8_t>(code)), table[code]);
  }
}

TEST(Scalar, E4m3CodesAreThoseOfTheSpecification) {
  const Json half = Example("e4m3_table");
  ASSERT_EQ(half.size(), 128u);
  for (size_t code = 0; code < 128; ++code) {
    ExpectSame(E4m3ToFloat(static_cast<uint8_t>(code)), half[code]);
  }
  const Json spots = Example("e4m3_decode");
  ASSERT_EQ(spots.size(), 27u);
  for (const auto& [code, value] : spots.items()) {
    ExpectSame(E4m3ToFloat(static_cast<uint8_t>(FromHex(code))), value);
  }
}

TEST(Scalar, E4m3EncodingIsThatOfTheSpecification) {
  const Json examples = Example("e4m3_encode");
  ASSERT_EQ(examples.size(), 24u);
  for (const auto& [value, code] : examples.items()) {
    EXPECT_EQ(FloatToE4m3(std::stof(value)), FromHex(code)) << value;
  }
}

TEST(Scalar, E4m3CodesSurviveARoundTrip) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7F) == 0x7F) continue;
    EXPECT_EQ(FloatToE4m3(E4m3ToFloat(static_cast<uint8_t>(code))), code);
  }
  EXPECT_EQ(FloatToE4m3(std::numeric_limits<float>::quiet_NaN()) & 0x7F, 0x7F);
  EXPECT_EQ(FloatToE4m3(std::numeric_limits<float>::infinity()), 0x7E);
}

TEST(Scalar, E4m3EncodingTakesTheNearestAndOfTwoTheEven) {
  for (int code = 0; code + 1 < 0x7F; ++code) {
    const float low = E4m3ToFloat(static_cast<uint8_t>(code));
    const float high = E4m3ToFloat(static_cast<uint8_t>(code + 1));
    const float middle = (low + high) / 2;  // exact: one more bit
    EXPECT_EQ(FloatToE4m3(std::nextafter(middle, low)), code);
    EXPECT_EQ(FloatToE4m3(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(FloatToE4m3(std::nextafter(middle, high)), code + 1);
  }
}

TEST(Scalar, Bf16RoundingIsThatOfTheSpecification) {
  const Json examples = Example("bf16_round");
  ASSERT_EQ(examples.size(), 10u);
  for (const auto& [bits, rounded] : examples.items()) {
    EXPECT_EQ(FloatToBf16(std::bit_cast<float>(FromHex(bits))), FromHex(rounded)) << bits;
  }
}

TEST(Scalar, EveryBf16SurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = Bf16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToBf16(value), bits);
  }
}

TEST(Scalar, EveryFp16SurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = Fp16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToFp16(value), bits);
  }
}

TEST(Scalar, Fp16TakesTheNearestAndOfTwoTheEven) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = Fp16ToFloat(static_cast<uint16_t>(bits));
    const float high = Fp16ToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2;
    ASSERT_EQ(FloatToFp16(std::nextafter(middle, low)), bits);
    ASSERT_EQ(FloatToFp16(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(FloatToFp16(std::nextafter(middle, high)), bits + 1);
  }
  EXPECT_EQ(Fp16ToFloat(0x3C00), 1.0f);
  EXPECT_EQ(Fp16ToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(Fp16ToFloat(0xFBFF), -65504.0f);
  EXPECT_EQ(FloatToFp16(65519.0f), 0x7BFF);
  EXPECT_EQ(FloatToFp16(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToFp16(-1e10f), 0xFC00);
  EXPECT_TRUE(std::isnan(Fp16ToFloat(FloatToFp16(std::nanf("")))));
}

// C081.
TEST(Scalar, E8m0IsAPowerOfTwo) {
  const Json cases = ReadGoldenJson("formats/fp4_e2m1_e8m0.json")["e8m0"];
  ASSERT_EQ(cases.size(), 6u);
  for (const Json& item : cases) {
    ExpectSame(E8m0ToFloat(item["byte"].get<uint8_t>()), item["value"]);
  }
  const Json examples = Example("ue8m0");
  for (const auto& [scale, expected] : examples.items()) {
    ExpectSame(E8m0ToFloat(expected["e8m0_byte"].get<uint8_t>()), expected["pow2"]);
  }
}

TEST(Scalar, DTypesAreSpelledAsSafetensorsDoes) {
  const std::vector<std::pair<std::string, int>> types = {
      {"BOOL", 8},    {"U8", 8},          {"I8", 8},          {"I16", 16},    {"U16", 16},
      {"I32", 32},    {"U32", 32},        {"I64", 64},        {"U64", 64},    {"F16", 16},
      {"BF16", 16},   {"F32", 32},        {"F64", 64},        {"C64", 64},    {"F8_E4M3", 8},
      {"F8_E5M2", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6},
      {"F6_E3M2", 6}, {"F4", 4}};
  ASSERT_EQ(types.size(), 22u);
  for (const auto& [name, bits] : types) {
    const std::optional<DType> type = ParseDType(name);
    ASSERT_TRUE(type.has_value()) << name;
    EXPECT_EQ(DTypeName(*type), name);
    EXPECT_EQ(DTypeBits(*type), bits) << name;
  }
  EXPECT_FALSE(ParseDType("F7_X").has_value());
  EXPECT_FALSE(ParseDType("f32").has_value());
  EXPECT_FALSE(ParseDType("").has_value());
}

}  // namespace
}  // namespace hadal
