// Blocks of GGUF's types to floats, element by element. Specification, 7.7. A block of the types of
// 2023 has one scale, and some a minimum; a block of the K types has sub-blocks with small integer
// scales, which one or two floats multiply. Each value is formed as the common decoders form it:
// (scale * sub-scale) * code, less (minimum * sub-minimum).
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/reference/decode_half.h"
#include "tensor/block_layout.h"

namespace hadal::reference {

inline float HalfAt(const unsigned char* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return DecodeF16(bits);
}

// Code i of 32: the low halves of 16 bytes, then the high ones.
inline int NibbleOf(const unsigned char* bytes, int i) {
  return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4;
}
inline int FifthBitOf(const unsigned char* bytes, int i) {
  return ((bytes[i / 8] >> (i % 8)) & 1) << 4;
}

// Six bits of scale and six of minimum for sub-block s of eight, in twelve bytes.
struct SubScales {
  float scale, min;
};
inline SubScales SubScalesOf(const unsigned char* packed, int s) {
  if (s < 4) {
    return {static_cast<float>(packed[s] & 63), static_cast<float>(packed[s + 4] & 63)};
  }
  return {static_cast<float>((packed[s + 4] & 15) | (packed[s - 4] >> 6 << 4)),
          static_cast<float>(packed[s + 4] >> 4 | (packed[s] >> 6 << 4))};
}

inline int NonLinearCode(int nibble) {
  constexpr int kCodes[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};
  return kCodes[nibble];
}

// What an element is made of: scale * code, and, where HasMin(), + min.
struct BlockCode {
  float scale;
  int code;
  float min = 0;
};

constexpr bool HasMin(QuantFormat format) {
  using F = QuantFormat;
  return format == F::kQ4_1 || format == F::kQ5_1 || format == F::kQ2_K || format == F::kQ4_K ||
         format == F::kQ5_K;
}

// Elements that share scale and minimum.
constexpr int ScaleElements(QuantFormat format) {
  using F = QuantFormat;
  return format == F::kQ2_K || format == F::kQ3_K || format == F::kQ6_K ? 16 : 32;
}

// Element i of a block.
template <QuantFormat format>
BlockCode BlockCodeAt(const unsigned char* block, int i) {
  using F = QuantFormat;
  const auto scaled = [](float scale, int code) { return scale * static_cast<float>(code); };
  if constexpr (format == F::kQ4_0) {
    return {HalfAt(block), NibbleOf(block + 2, i) - 8};
  } else if constexpr (format == F::kQ4_1) {
    return {HalfAt(block), NibbleOf(block + 4, i), HalfAt(block + 2)};
  } else if constexpr (format == F::kQ5_0) {
    return {HalfAt(block), (NibbleOf(block + 6, i) | FifthBitOf(block + 2, i)) - 16};
  } else if constexpr (format == F::kQ5_1) {
    return {HalfAt(block), NibbleOf(block + 8, i) | FifthBitOf(block + 4, i), HalfAt(block + 2)};
  } else if constexpr (format == F::kQ8_0) {
    return {HalfAt(block), static_cast<int8_t>(block[2 + i])};
  } else if constexpr (format == F::kIq4Nl) {
    return {HalfAt(block), NonLinearCode(NibbleOf(block + 2, i))};
  } else if constexpr (format == F::kIq4Xs) {
    const int s = i / 32;
    const int high = (block[2 + s / 4] >> (2 * (s % 4))) & 3;
    const int scale = (((block[4 + s / 2] >> (4 * (s % 2))) & 15) | (high << 4)) - 32;
    return {scaled(HalfAt(block), scale), NonLinearCode(NibbleOf(block + 8 + 16 * s, i % 32))};
  } else if constexpr (format == F::kQ2_K) {
    const int scales = block[i / 16];
    const int code = (block[16 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
    return {scaled(HalfAt(block + 80), scales & 15), code,
            -scaled(HalfAt(block + 82), scales >> 4)};
  } else if constexpr (format == F::kQ3_K) {
    const int s = i / 16;
    const int low = (block[96 + s % 8] >> (s / 8 * 4)) & 15;
    const int high = (block[104 + s % 4] >> (s / 4 * 2)) & 3;
    const int code = (block[32 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
    const int third = (block[i % 32] >> (i / 32)) & 1;
    return {scaled(HalfAt(block + 108), (low | (high << 4)) - 32), code + 4 * third - 4};
  } else if constexpr (format == F::kQ6_K) {
    const int half = i / 128, run = i / 32 % 4, l = i % 32;
    const int low = (block[64 * half + 32 * (run % 2) + l] >> (run / 2 * 4)) & 15;
    const int high = (block[128 + 32 * half + l] >> (2 * run)) & 3;
    const int scale = static_cast<int8_t>(block[192 + i / 16]);
    return {scaled(HalfAt(block + 208), scale), (low | (high << 4)) - 32};
  } else {
    static_assert(format == F::kQ4_K || format == F::kQ5_K);
    const int s = i / 32, l = i % 32;
    const SubScales sub = SubScalesOf(block + 4, s);
    const unsigned char* nibbles = block + (format == F::kQ4_K ? 16 : 48);
    int code = (nibbles[32 * (s / 2) + l] >> (s % 2 * 4)) & 15;
    if constexpr (format == F::kQ5_K) code |= ((block[16 + l] >> s) & 1) << 4;
    return {HalfAt(block) * sub.scale, code, -(HalfAt(block + 2) * sub.min)};
  }
}

template <QuantFormat format>
float BlockElement(const unsigned char* block, int i) {
  const BlockCode part = BlockCodeAt<format>(block, i);
  const float product = part.scale * static_cast<float>(part.code);
  if constexpr (HasMin(format)) return product + part.min;
  return product;
}

}  // namespace hadal::reference
