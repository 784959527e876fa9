#include "convert/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/types.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

// Word `idx` of a stream: SplitMix64, whose state is a counter.
uint64_t RandomWord(uint64_t stream, uint64_t idx) {
  return Mix64(stream + (idx + 1) * 0x9e3779b97f4a7c15ULL);
}

// Of 8 bits: the sum of their halves around zero, -15 .. 15; small values are the more frequent.
int SmallNumber(int bits) { return bits / 16 + bits % 16 - 15; }

// Of 4 bits: 1 .. 15, around 8.
int NibbleCode(int bits) { return bits < 8 ? bits + 1 : bits; }

// The code of 8 random bits, and the number that it stands for (of kInt4Group there are two).
struct Code {
  uint8_t bits = 0;
  double value = 0.0;
};

Code CodeOf(QuantFormat format, int bits) {
  switch (format) {
    case QuantFormat::kF8Block128: {
      // 15 * 28 is 420, near the largest code; rounding keeps the sign's symmetry.
      const uint8_t code = FloatToE4m3(static_cast<float>(SmallNumber(bits) * 28));
      return {code, E4m3ToFloat(code)};
    }
    case QuantFormat::kInt8Group: {
      const int code = SmallNumber(bits) * 8;
      return {static_cast<uint8_t>(static_cast<int8_t>(code)), static_cast<double>(code)};
    }
    default: {
      const int low = NibbleCode(bits % 16), high = NibbleCode(bits / 16);
      return {static_cast<uint8_t>(low | high << 4), static_cast<double>(low - 8)};
    }
  }
}

// Around 1, by a quarter up or down, from 3 bits; their mean square is 1.
double ScaleFactor(uint64_t bits) {
  const double factor = 0.75 + static_cast<double>(bits % 8) / 14.0;
  return factor / 1.0131;
}

}  // namespace

uint64_t RandomStream(uint64_t seed, std::string_view name) {
  Hash128 key = Extend({}, seed);
  for (const char letter : name) key = Extend(key, static_cast<uint8_t>(letter));
  return key.lo;
}

RandomElements RandomElements::Create(QuantFormat format, double deviation) {
  RandomElements elements;
  elements.table_ = std::make_unique<Table>();
  double sum_of_squares = 0.0;
  for (int bits = 0; bits < 65536; ++bits) {
    uint16_t* entry = &(*elements.table_)[static_cast<size_t>(bits)];
    const int low = bits % 256, high = bits / 256;
    if (format == QuantFormat::kBF16) {
      // The sum of two bytes around zero has a deviation of sqrt((256^2 - 1) / 6).
      constexpr double kDeviation = 104.5115;
      *entry = FloatToBf16(static_cast<float>((low + high - 255) * deviation / kDeviation));
      const double value = Bf16ToFloat(*entry);
      sum_of_squares += value * value;
    } else {
      HADAL_CHECK(format == QuantFormat::kF8Block128 || IsGrouped(format));
      const Code first = CodeOf(format, low), second = CodeOf(format, high);
      *entry = static_cast<uint16_t>(first.bits | second.bits << 8);
      sum_of_squares += first.value * first.value;
    }
  }
  elements.deviation_ = std::sqrt(sum_of_squares / 65536);
  return elements;
}

void RandomElements::Fill(uint64_t stream, int64_t first_byte, std::span<std::byte> bytes) const {
  HADAL_DCHECK(first_byte % 8 == 0);
  const Table& table = *table_;
  auto idx = static_cast<uint64_t>(first_byte / 8);
  for (size_t at = 0; at < bytes.size(); at += 8, ++idx) {
    const uint64_t word = RandomWord(stream, idx);
    const uint16_t four[4] = {table[word & 0xFFFF], table[word >> 16 & 0xFFFF],
                              table[word >> 32 & 0xFFFF], table[word >> 48]};
    std::memcpy(bytes.data() + at, four, std::min<size_t>(8, bytes.size() - at));
  }
}

void FillRandomTiles(const RandomElements& codes, const GroupShape& shape, int num_rows, int cols,
                     double scale, uint64_t stream, int64_t first_tile,
                     std::span<std::byte> tiles) {
  const int64_t tile_bytes = TileBytes(shape, cols);
  uint16_t scales[8];
  for (uint64_t i = 0; i < 8; ++i) {
    scales[i] = FloatToFp16(static_cast<float>(scale * ScaleFactor(i)));
  }
  const auto num_tiles = static_cast<int64_t>(tiles.size()) / tile_bytes;
  for (int64_t tile = 0; tile < num_tiles; ++tile) {
    std::byte* block = tiles.data() + tile * tile_bytes;
    int64_t first_byte = (first_tile + tile) * tile_bytes;
    for (int col = 0; col < cols; col += shape.group_size) {
      const int group_cols = std::min(shape.group_size, cols - col);
      const int64_t code_bytes = CodeBytes(shape, group_cols);
      codes.Fill(stream, first_byte, {block, static_cast<size_t>(code_bytes)});
      uint64_t word = RandomWord(stream, static_cast<uint64_t>((first_byte + code_bytes) / 8));
      for (int r = 0; r < kTileRows; ++r, word >>= 3) {
        const bool is_row = (first_tile + tile) * kTileRows + r < num_rows;
        const uint16_t bits = is_row ? scales[word % 8] : uint16_t{0};
        std::memcpy(block + code_bytes + 2 * r, &bits, 2);
      }
      if (shape.has_zero_points) {
        std::memset(block + code_bytes + 2 * kTileRows, 0x88, kTileRows / 2);
      }
      block += BlockBytes(shape, group_cols);
      first_byte += BlockBytes(shape, group_cols);
    }
  }
}

}  // namespace hadal
