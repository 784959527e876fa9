#include "formats/ggml_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

constexpr std::array kTypes = {
    GgmlTypeInfo{GgmlType::kF32, "F32", 1, 4},
    GgmlTypeInfo{GgmlType::kF16, "F16", 1, 2},
    GgmlTypeInfo{GgmlType::kQ4_0, "Q4_0", 32, 18},
    GgmlTypeInfo{GgmlType::kQ4_1, "Q4_1", 32, 20},
    GgmlTypeInfo{GgmlType::kQ5_0, "Q5_0", 32, 22},
    GgmlTypeInfo{GgmlType::kQ5_1, "Q5_1", 32, 24},
    GgmlTypeInfo{GgmlType::kQ8_0, "Q8_0", 32, 34},
    GgmlTypeInfo{GgmlType::kQ4_K, "Q4_K", 256, 144},
    GgmlTypeInfo{GgmlType::kQ5_K, "Q5_K", 256, 176},
    GgmlTypeInfo{GgmlType::kQ6_K, "Q6_K", 256, 210},
    GgmlTypeInfo{GgmlType::kBF16, "BF16", 1, 2},
};

template <class T>
T Read(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

float ReadHalf(const uint8_t* bytes) { return Fp16ToFloat(Read<uint16_t>(bytes)); }

// The 32 codes of a block: 4 bits in two nibble planes, and a fifth bit from `high` when there is
// one.
int FourBits(const uint8_t* nibbles, int element) {
  return element < 16 ? nibbles[element] & 15 : nibbles[element - 16] >> 4;
}
int FifthBit(uint32_t high, int element) { return static_cast<int>((high >> element) & 1) << 4; }

void DecodeF32(const uint8_t* block, float* out) { *out = Read<float>(block); }
void DecodeF16(const uint8_t* block, float* out) { *out = ReadHalf(block); }
void DecodeBf16(const uint8_t* block, float* out) { *out = Bf16ToFloat(Read<uint16_t>(block)); }

void DecodeQ4_0(const uint8_t* block, float* out) {
  const float d = ReadHalf(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(FourBits(block + 2, i) - 8);
}

void DecodeQ4_1(const uint8_t* block, float* out) {
  const float d = ReadHalf(block), m = ReadHalf(block + 2);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(FourBits(block + 4, i)) + m;
}

void DecodeQ5_0(const uint8_t* block, float* out) {
  const float d = ReadHalf(block);
  const auto high = Read<uint32_t>(block + 2);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>((FourBits(block + 6, i) | FifthBit(high, i)) - 16);
  }
}

void DecodeQ5_1(const uint8_t* block, float* out) {
  const float d = ReadHalf(block), m = ReadHalf(block + 2);
  const auto high = Read<uint32_t>(block + 4);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(FourBits(block + 8, i) | FifthBit(high, i)) + m;
  }
}

void DecodeQ8_0(const uint8_t* block, float* out) {
  const float d = ReadHalf(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

// Q4_K and Q5_K: eight sub-blocks of 32, of which two share 32 bytes of nibbles. `high` is null for
// Q4_K; bit s of high[l] is the fifth bit of element l of sub-block s.
void DecodeKBlock(const uint8_t* block, const uint8_t* high, const uint8_t* nibbles, float* out) {
  const float d = ReadHalf(block), dmin = ReadHalf(block + 2);
  for (int s = 0; s < 8; ++s) {
    const ScaleAndMin pair = UnpackScaleAndMin(block + 4, s);
    const float scale = d * static_cast<float>(pair.scale);
    const float min = dmin * static_cast<float>(pair.min);
    for (int l = 0; l < 32; ++l) {
      const uint8_t byte = nibbles[32 * (s / 2) + l];
      int code = s % 2 == 0 ? byte & 15 : byte >> 4;
      if (high != nullptr) code |= ((high[l] >> s) & 1) << 4;
      out[32 * s + l] = scale * static_cast<float>(code) - min;
    }
  }
}

void DecodeQ4_K(const uint8_t* block, float* out) { DecodeKBlock(block, nullptr, block + 16, out); }
void DecodeQ5_K(const uint8_t* block, float* out) {
  DecodeKBlock(block, block + 16, block + 48, out);
}

void DecodeQ6_K(const uint8_t* block, float* out) {
  const float d = ReadHalf(block + 208);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* low = block + 64 * half;
    const uint8_t* high = block + 128 + 32 * half;
    const uint8_t* scales = block + 192 + 8 * half;
    for (int i = 0; i < 128; ++i) {
      const int part = i / 32, l = i % 32;  // four runs of 32 share the bytes of low and high
      const uint8_t byte = low[l + 32 * (part % 2)];
      const int code = (part < 2 ? byte & 15 : byte >> 4) | (((high[l] >> (2 * part)) & 3) << 4);
      const auto scale = static_cast<int8_t>(scales[l / 16 + 2 * part]);
      out[128 * half + i] = d * static_cast<float>(scale) * static_cast<float>(code - 32);
    }
  }
}

using Decoder = void (*)(const uint8_t* block, float* out);

Decoder DecoderOf(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
      return DecodeF32;
    case GgmlType::kF16:
      return DecodeF16;
    case GgmlType::kQ4_0:
      return DecodeQ4_0;
    case GgmlType::kQ4_1:
      return DecodeQ4_1;
    case GgmlType::kQ5_0:
      return DecodeQ5_0;
    case GgmlType::kQ5_1:
      return DecodeQ5_1;
    case GgmlType::kQ8_0:
      return DecodeQ8_0;
    case GgmlType::kQ4_K:
      return DecodeQ4_K;
    case GgmlType::kQ5_K:
      return DecodeQ5_K;
    case GgmlType::kQ6_K:
      return DecodeQ6_K;
    case GgmlType::kBF16:
      return DecodeBf16;
  }
  return nullptr;
}

void WriteHalf(float value, std::byte* out) {
  const uint16_t bits = FloatToFp16(value);
  std::memcpy(out, &bits, sizeof(bits));
}

}  // namespace

std::optional<GgmlTypeInfo> FindGgmlType(uint32_t id) {
  for (const GgmlTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == id) return info;
  }
  return std::nullopt;
}

void DecodeGgmlBlocks(GgmlType type, std::span<const std::byte> bytes, std::span<float> out) {
  const std::optional<GgmlTypeInfo> info = FindGgmlType(static_cast<uint32_t>(type));
  HADAL_CHECK(info.has_value());
  const size_t blocks = bytes.size() / static_cast<size_t>(info->block_bytes);
  HADAL_CHECK(blocks * static_cast<size_t>(info->block_bytes) == bytes.size());
  HADAL_CHECK(blocks * static_cast<size_t>(info->block_elements) == out.size());
  const Decoder decode = DecoderOf(type);
  const auto* block = reinterpret_cast<const uint8_t*>(bytes.data());
  for (size_t b = 0; b < blocks; ++b) {
    decode(block + b * static_cast<size_t>(info->block_bytes),
           out.data() + b * static_cast<size_t>(info->block_elements));
  }
}

ScaleAndMin UnpackScaleAndMin(const uint8_t* packed, int j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | ((packed[j - 4] >> 6) << 4),
          (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4)};
}

void EncodeQ4_0(std::span<const float, 32> values, std::span<std::byte, 18> block) {
  float extreme = 0.0f;  // the first of largest magnitude, with its sign
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  const float d = extreme / -8.0f;
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;  // of the float, not of the stored half
  const auto code = [&](float value) {
    return std::min(15, static_cast<int>(value * inverse + 8.5f));
  };
  WriteHalf(d, block.data());
  for (size_t i = 0; i < 16; ++i) {
    block[2 + i] = static_cast<std::byte>(code(values[i]) | (code(values[i + 16]) << 4));
  }
}

void EncodeQ8_0(std::span<const float, 32> values, std::span<std::byte, 34> block) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  const float d = largest / 127.0f;
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  WriteHalf(d, block.data());
  for (size_t i = 0; i < 32; ++i) {
    // std::round: half away from zero.
    block[2 + i] = static_cast<std::byte>(static_cast<int8_t>(std::round(values[i] * inverse)));
  }
}

}  // namespace hadal
