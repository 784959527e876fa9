// Element types of files, and exact scalar conversions: slow and clear, the truth for kernels and
// tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hadal {

// The dtypes of the safetensors format, then the block types of GGUF files (specification, 7.7).
enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kF8E4M3,
  kF8E5M2,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kF8E8M0,
  kF6E2M3,
  kF6E3M2,
  kF4,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIq4Nl,
  kIq4Xs,
};

// "F8_E4M3" and so on, as safetensors spells it; "Q4_K" and so on.
std::string_view DTypeName(DType dtype);
// Of the names of safetensors alone.
std::optional<DType> ParseDType(std::string_view name);
// 0 for block types.
int DTypeBits(DType dtype);
constexpr bool IsBlockType(DType dtype) { return dtype >= DType::kQ4_0; }

// Round to nearest, ties to even; NaN stays a (quiet) NaN. Specification, 7.5.
uint16_t FloatToBf16(float value);
float Bf16ToFloat(uint16_t bits);

// IEEE binary16; round to nearest, ties to even; overflow becomes infinity.
uint16_t FloatToFp16(float value);
float Fp16ToFloat(uint16_t bits);

// E4M3FN: no infinities, NaN is 0x7F and 0xFF, largest 448. Encoding clamps first.
// Specification, 7.1.
uint8_t FloatToE4m3(float value);
float E4m3ToFloat(uint8_t code);

// 2^(e - 127); 0xFF is NaN. Specification, 7.2.
float E8m0ToFloat(uint8_t code);

}  // namespace hadal
