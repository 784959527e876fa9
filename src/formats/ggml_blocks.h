// The block types of GGML files, bit exact. Specification, 7.7; all numbers little-endian, any
// alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/scalar.h"

namespace hadal {

// The values are the ids in the files.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
};

struct GgmlTypeInfo {
  GgmlType type;
  std::string_view name;
  int block_elements;
  int block_bytes;
  DType dtype;  // of a tensor of this type
};

// The type's name for people where the id is known, even if it cannot be decoded here; empty for
// others.
std::string_view GgmlTypeName(uint32_t id);

// Nothing for an id that cannot be decoded here.
std::optional<GgmlTypeInfo> FindGgmlType(uint32_t id);

// Nothing for a dtype that GGUF files do not have.
std::optional<GgmlTypeInfo> FindGgmlType(DType dtype);

// Decodes whole blocks. REQUIRES: bytes.size() = blocks * block_bytes, out.size() = blocks *
// block_elements.
void DecodeGgmlBlocks(GgmlType type, std::span<const std::byte> bytes, std::span<float> out);

// Pair j (0 to 7) of the packed 6-bit scales and minima of Q4_K and Q5_K; `packed` has 12 bytes.
struct ScaleAndMin {
  int scale, min;
};
ScaleAndMin UnpackScaleAndMin(const uint8_t* packed, int j);

// 32 values to a block of Q4_0 (18 bytes) and Q8_0 (34 bytes), as the common tools round them.
void EncodeQ4_0(std::span<const float, 32> values, std::span<std::byte, 18> block);
void EncodeQ8_0(std::span<const float, 32> values, std::span<std::byte, 34> block);

}  // namespace hadal
