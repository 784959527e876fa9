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
    GgmlTypeInfo{GgmlType::kF32, "F32", 1, 4, DType::kF32},
    GgmlTypeInfo{GgmlType::kF16, "F16", 1, 2, DType::kF16},
    GgmlTypeInfo{GgmlType::kQ4_0, "Q4_0", 32, 18, DType::kQ4_0},
    GgmlTypeInfo{GgmlType::kQ4_1, "Q4_1", 32, 20, DType::kQ4_1},
    GgmlTypeInfo{GgmlType::kQ5_0, "Q5_0", 32, 22, DType::kQ5_0},
    GgmlTypeInfo{GgmlType::kQ5_1, "Q5_1", 32, 24, DType::kQ5_1},
    GgmlTypeInfo{GgmlType::kQ8_0, "Q8_0", 32, 34, DType::kQ8_0},
    GgmlTypeInfo{GgmlType::kQ2_K, "Q2_K", 256, 84, DType::kQ2_K},
    GgmlTypeInfo{GgmlType::kQ3_K, "Q3_K", 256, 110, DType::kQ3_K},
    GgmlTypeInfo{GgmlType::kQ4_K, "Q4_K", 256, 144, DType::kQ4_K},
    GgmlTypeInfo{GgmlType::kQ5_K, "Q5_K", 256, 176, DType::kQ5_K},
    GgmlTypeInfo{GgmlType::kQ6_K, "Q6_K", 256, 210, DType::kQ6_K},
    GgmlTypeInfo{GgmlType::kIQ4_NL, "IQ4_NL", 32, 18, DType::kIq4Nl},
    GgmlTypeInfo{GgmlType::kIQ4_XS, "IQ4_XS", 256, 136, DType::kIq4Xs},
    GgmlTypeInfo{GgmlType::kBF16, "BF16", 1, 2, DType::kBF16},
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

// Sixteen scales for 16 elements each, a scale and a minimum of four bits in a byte; four runs of
// 32 elements share 32 bytes of two-bit codes.
void DecodeQ2_K(const uint8_t* block, float* out) {
  const float d = ReadHalf(block + 80), dmin = ReadHalf(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, run = i % 128 / 32;
    const int code = (block[16 + 32 * half + i % 32] >> (2 * run)) & 3;
    const uint8_t pair = block[i / 16];
    const float scale = d * static_cast<float>(pair & 15);
    out[i] = scale * static_cast<float>(code) - dmin * static_cast<float>(pair >> 4);
  }
}

// As Q2_K, without minima: a third bit is in a mask of its own, inverted, and the scales have six
// bits, of which four lie in eight bytes and two in the four after them.
void DecodeQ3_K(const uint8_t* block, float* out) {
  const float d = ReadHalf(block + 108);
  const uint8_t* packed = block + 96;
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, run = i % 128 / 32, group = i / 16;
    const int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
    const int scale = (low | (((packed[8 + group % 4] >> (2 * (group / 4))) & 3) << 4)) - 32;
    int code = (block[32 + 32 * half + i % 32] >> (2 * run)) & 3;
    if (((block[i % 32] >> (4 * half + run)) & 1) == 0) code -= 4;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(code);
  }
}

constexpr std::array kNonLinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

void DecodeIq4Nl(const uint8_t* block, float* out) {
  const float d = ReadHalf(block);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(kNonLinear[static_cast<size_t>(FourBits(block + 2, i))]);
  }
}

// Eight runs of 32 as in IQ4_NL, each with a scale of six bits.
void DecodeIq4Xs(const uint8_t* block, float* out) {
  const float d = ReadHalf(block);
  const auto high = Read<uint16_t>(block + 2);
  for (int run = 0; run < 8; ++run) {
    const int low = (block[4 + run / 2] >> (4 * (run % 2))) & 15;
    const int scale = (low | (((high >> (2 * run)) & 3) << 4)) - 32;
    for (int i = 0; i < 32; ++i) {
      const auto code = static_cast<size_t>(FourBits(block + 8 + 16 * run, i));
      out[32 * run + i] = d * static_cast<float>(scale) * static_cast<float>(kNonLinear[code]);
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
    case GgmlType::kQ2_K:
      return DecodeQ2_K;
    case GgmlType::kQ3_K:
      return DecodeQ3_K;
    case GgmlType::kQ4_K:
      return DecodeQ4_K;
    case GgmlType::kQ5_K:
      return DecodeQ5_K;
    case GgmlType::kQ6_K:
      return DecodeQ6_K;
    case GgmlType::kIQ4_NL:
      return DecodeIq4Nl;
    case GgmlType::kIQ4_XS:
      return DecodeIq4Xs;
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

std::optional<GgmlTypeInfo> FindGgmlType(DType dtype) {
  for (const GgmlTypeInfo& info : kTypes) {
    if (info.dtype == dtype) return info;
  }
  return std::nullopt;
}

std::string_view GgmlTypeName(uint32_t id) {
  struct Name {
    uint32_t id;
    std::string_view name;
  };
  constexpr std::array kOthers = {Name{9, "Q8_1"},    Name{15, "Q8_K"},    Name{16, "IQ2_XXS"},
                                  Name{17, "IQ2_XS"}, Name{18, "IQ3_XXS"}, Name{19, "IQ1_S"},
                                  Name{21, "IQ3_S"},  Name{22, "IQ2_S"},   Name{24, "I8"},
                                  Name{25, "I16"},    Name{26, "I32"},     Name{27, "I64"},
                                  Name{28, "F64"},    Name{29, "IQ1_M"},   Name{34, "TQ1_0"},
                                  Name{35, "TQ2_0"},  Name{39, "MXFP4"}};
  if (const auto info = FindGgmlType(id)) return info->name;
  for (const Name& other : kOthers) {
    if (other.id == id) return other.name;
  }
  return {};
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
