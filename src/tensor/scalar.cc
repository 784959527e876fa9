#include "tensor/scalar.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace hadal {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int bits;
};

constexpr std::array kDTypes = {
    DTypeInfo{DType::kBool, "BOOL", 8},
    DTypeInfo{DType::kU8, "U8", 8},
    DTypeInfo{DType::kI8, "I8", 8},
    DTypeInfo{DType::kI16, "I16", 16},
    DTypeInfo{DType::kU16, "U16", 16},
    DTypeInfo{DType::kI32, "I32", 32},
    DTypeInfo{DType::kU32, "U32", 32},
    DTypeInfo{DType::kI64, "I64", 64},
    DTypeInfo{DType::kU64, "U64", 64},
    DTypeInfo{DType::kF16, "F16", 16},
    DTypeInfo{DType::kBF16, "BF16", 16},
    DTypeInfo{DType::kF32, "F32", 32},
    DTypeInfo{DType::kF64, "F64", 64},
    DTypeInfo{DType::kC64, "C64", 64},
    DTypeInfo{DType::kF8E4M3, "F8_E4M3", 8},
    DTypeInfo{DType::kF8E5M2, "F8_E5M2", 8},
    DTypeInfo{DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    DTypeInfo{DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    DTypeInfo{DType::kF8E8M0, "F8_E8M0", 8},
    DTypeInfo{DType::kF6E2M3, "F6_E2M3", 6},
    DTypeInfo{DType::kF6E3M2, "F6_E3M2", 6},
    DTypeInfo{DType::kF4, "F4", 4},
    DTypeInfo{DType::kQ4_0, "Q4_0", 0},
    DTypeInfo{DType::kQ4_1, "Q4_1", 0},
    DTypeInfo{DType::kQ5_0, "Q5_0", 0},
    DTypeInfo{DType::kQ5_1, "Q5_1", 0},
    DTypeInfo{DType::kQ8_0, "Q8_0", 0},
    DTypeInfo{DType::kQ2_K, "Q2_K", 0},
    DTypeInfo{DType::kQ3_K, "Q3_K", 0},
    DTypeInfo{DType::kQ4_K, "Q4_K", 0},
    DTypeInfo{DType::kQ5_K, "Q5_K", 0},
    DTypeInfo{DType::kQ6_K, "Q6_K", 0},
    DTypeInfo{DType::kIq4Nl, "IQ4_NL", 0},
    DTypeInfo{DType::kIq4Xs, "IQ4_XS", 0},
};

// Rounds to an integer, ties to even, whatever the rounding mode of the thread.
float RoundEven(float value) {
  const float down = std::floor(value);
  const float rest = value - down;
  if (rest > 0.5f) return down + 1;
  if (rest < 0.5f) return down;
  return std::fmod(down, 2.0f) == 0 ? down : down + 1;
}

}  // namespace

std::string_view DTypeName(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name && !IsBlockType(info.dtype)) return info.dtype;
  }
  return std::nullopt;
}

int DTypeBits(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bits; }

uint16_t FloatToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToFp16(float value) {
  const uint32_t sign = (std::bit_cast<uint32_t>(value) >> 16) & 0x8000;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x1p-14f) {  // subnormal, or rounds up to the smallest normal
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(RoundEven(magnitude * 0x1p24f)));
  }
  int exponent = 0;
  const float fraction = std::frexp(magnitude, &exponent);                     // in [0.5, 1)
  const auto mantissa = static_cast<uint32_t>(RoundEven(fraction * 2048.0f));  // 1024 .. 2048
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 13) << 10) + mantissa));
}

float Fp16ToFloat(uint16_t bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 0x1F;
  const int mantissa = bits & 0x3FF;
  if (exponent == 0x1F) {
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

uint8_t FloatToE4m3(float value) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7F);
  const float magnitude = std::fmin(std::fabs(value), 448.0f);
  if (magnitude < 0x1p-6f) {  // subnormal, or rounds up to the smallest normal
    return static_cast<uint8_t>(sign | static_cast<int>(RoundEven(magnitude * 512.0f)));
  }
  int exponent = 0;
  const float fraction = std::frexp(magnitude, &exponent);             // in [0.5, 1)
  const int mantissa = static_cast<int>(RoundEven(fraction * 16.0f));  // 8 .. 16
  return static_cast<uint8_t>(sign | (((exponent + 5) << 3) + mantissa));
}

float E4m3ToFloat(uint8_t code) {
  const float sign = (code & 0x80) != 0 ? -1.0f : 1.0f;
  const int exponent = (code >> 3) & 0xF;
  const int mantissa = code & 0x7;
  if ((code & 0x7F) == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(mantissa + 8), exponent - 10);
}

float E8m0ToFloat(uint8_t code) {
  if (code == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0f, static_cast<int>(code) - 127);
}

}  // namespace hadal
