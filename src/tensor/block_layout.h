// The number formats of weights and their bytes. Plain; includes only <cstdint>, because kernels
// include it.
#pragma once

#include <cstdint>

namespace hadal {

// What the numbers of a matrix mean. Decided by the file.
enum class QuantFormat : uint8_t {
  kF32,
  kBF16,
  kF16,
  kF8Block128,  // E4M3FN codes; one float scale per 128 x 128 block, which multiplies
                // (specification, 7.3)
  kInt8Group,   // codes -127 .. 127 times the scale of their group; symmetric, because -128 has no
                // counterpart and byte products would overflow
  kInt4Group,   // (codes 0 .. 15 - zero point) times the scale of their group; without stored zero
                // points it is 8
  // The block types of GGUF files, used as they lie in the file: rows of whole blocks.
  // Specification, 7.7.
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
inline constexpr int kNumQuantFormats = 18;
inline constexpr int kNumRowFormats = 4;  // the first ones, which are stored row by row
// The others, whose products take rounded rows.
inline constexpr int kNumRoundedFormats = kNumQuantFormats - kNumRowFormats;

constexpr bool IsGrouped(QuantFormat format) {
  return format == QuantFormat::kInt8Group || format == QuantFormat::kInt4Group;
}

// Counts the formats after the first ones from 0.
constexpr int RoundedIdx(QuantFormat format) { return static_cast<int>(format) - kNumRowFormats; }

inline constexpr int kF8BlockSize = 128;

constexpr bool IsBlocked(QuantFormat format) { return format >= QuantFormat::kQ4_0; }
inline constexpr int kNumBlockedFormats = kNumQuantFormats - static_cast<int>(QuantFormat::kQ4_0);
// Counts the blocked formats from 0.
constexpr int BlockedIdx(QuantFormat format) {
  return static_cast<int>(format) - static_cast<int>(QuantFormat::kQ4_0);
}

// Elements and bytes of a block of a blocked format. REQUIRES: IsBlocked(format).
struct BlockSize {
  int elements, bytes;
};
constexpr BlockSize SizeOfBlock(QuantFormat format) {
  constexpr BlockSize kSizes[] = {{32, 18},   {32, 20},   {32, 22},   {32, 24},
                                  {32, 34},   {256, 84},  {256, 110}, {256, 144},
                                  {256, 176}, {256, 210}, {32, 18},   {256, 136}};
  return kSizes[static_cast<int>(format) - static_cast<int>(QuantFormat::kQ4_0)];
}

// Bytes of one element of a format that is stored element by element; 0 for the others.
constexpr int64_t ElementBytes(QuantFormat format) {
  switch (format) {
    case QuantFormat::kF32:
      return 4;
    case QuantFormat::kBF16:
    case QuantFormat::kF16:
      return 2;
    case QuantFormat::kF8Block128:
      return 1;
    default:
      return 0;
  }
}

// Bytes of a row of a format that is not grouped. REQUIRES: of a blocked format whole blocks.
constexpr int64_t RowBytesOf(QuantFormat format, int64_t cols) {
  if (!IsBlocked(format)) return cols * ElementBytes(format);
  return cols / SizeOfBlock(format).elements * SizeOfBlock(format).bytes;
}

// In which order the bytes lie.
enum class WeightLayout : uint8_t {
  kRows,   // row-major as in the file, any alignment
  kTiles,  // of grouped formats, in files and in memory, and of blocked ones in memory: see below
};

// Grouped formats. Sixteen rows (outputs) form a tile; tiles follow each other, the last one filled
// up with zero rows. A tile is a chain of blocks, one for each group of columns: a product reads it
// as one stream, and a vector register takes whole outputs, so that no shuffle is needed on any
// processor. A group has 32, 64 or 128 columns; the last of a row may be shorter, by a multiple of
// 32. A block holds
//   - for every four columns, a step: of kInt8Group 64 bytes, byte 4 r + c the code of row r and
//     column c; of kInt4Group 32 bytes, byte 4 r + c with the code of row r in the lower and of row
//     r + 8 in the upper half;
//   - sixteen scales, binary16, one per row;
//   - with zero points, eight bytes: the one of row r in the lower half of byte r, of row r + 8 in
//     the upper half.
inline constexpr int kTileRows = 16;
inline constexpr int kStepCols = 4;
inline constexpr int kSmallestGroup = 32;

// How a grouped matrix is cut.
struct GroupShape {
  QuantFormat format = QuantFormat::kInt4Group;
  int group_size = 32;           // 32, 64 or 128
  bool has_zero_points = false;  // kInt4Group only

  friend constexpr bool operator==(const GroupShape&, const GroupShape&) = default;
};

constexpr int64_t StepBytes(QuantFormat format) {
  return kTileRows * kStepCols / (format == QuantFormat::kInt4Group ? 2 : 1);
}

// Bytes of a block's codes alone, and of the block.
constexpr int64_t CodeBytes(const GroupShape& shape, int group_cols) {
  return group_cols / kStepCols * StepBytes(shape.format);
}
constexpr int64_t BlockBytes(const GroupShape& shape, int group_cols) {
  return CodeBytes(shape, group_cols) + 2 * kTileRows + (shape.has_zero_points ? kTileRows / 2 : 0);
}

// Bytes of a tile of `cols` columns. REQUIRES: cols is a multiple of 32.
constexpr int64_t TileBytes(const GroupShape& shape, int cols) {
  const int full = cols / shape.group_size, rest = cols % shape.group_size;
  return full * BlockBytes(shape, shape.group_size) + (rest > 0 ? BlockBytes(shape, rest) : 0);
}

constexpr int NumTiles(int rows) { return (rows + kTileRows - 1) / kTileRows; }

// Blocked formats in kTiles. Eight rows form a tile, of which the blocks that stand above each
// other follow in the order of columns: the bytes of a block are cut into words of four bytes, and
// a few of two (the scales that would break the rhythm of four), and the same word of all eight
// rows lies together. A word at byte b of a block so begins at byte 8 b of the eight. A tile takes
// as many bytes as its rows.
struct TurnedWord {
  int begin, bytes;  // of the word that a byte belongs to
};
// REQUIRES: IsBlocked(format).
constexpr TurnedWord WordOfByte(QuantFormat format, int byte) {
  int leading = 0, trailing = 0;  // words of two bytes at the begin and the end of a block
  switch (format) {
    case QuantFormat::kQ4_0:
    case QuantFormat::kQ5_0:
    case QuantFormat::kQ8_0:
    case QuantFormat::kIq4Nl:
      leading = 1;
      break;
    case QuantFormat::kQ4_1:
    case QuantFormat::kQ5_1:
    case QuantFormat::kIq4Xs:
      leading = 2;
      break;
    case QuantFormat::kQ3_K:
    case QuantFormat::kQ6_K:
      trailing = 1;
      break;
    case QuantFormat::kQ2_K:
      trailing = 2;
      break;
    default:
      break;
  }
  const int fours_end = SizeOfBlock(format).bytes - 2 * trailing;
  if (byte < 2 * leading || byte >= fours_end) return {byte / 2 * 2, 2};
  return {2 * leading + (byte - 2 * leading) / 4 * 4, 4};
}

// Where byte `byte` of the block of row `row` of eight is, from the begin of the eight blocks.
constexpr int TurnedOffset(QuantFormat format, int row, int byte) {
  const TurnedWord word = WordOfByte(format, byte);
  return 8 * word.begin + word.bytes * row + byte - word.begin;
}

// Values of a row of the cache, or of words, that share a scale.
inline constexpr int kCacheGroup = 64;
constexpr int NumCacheGroups(int cols) { return (cols + kCacheGroup - 1) / kCacheGroup; }

// Rows of words, which attention multiplies where the cache is rounded: groups of kCacheGroup words
// of 16 bits, the last one filled up with zeros, then a float32 scale for each. A value is word *
// scale.
//
// The largest words are such that a sum over a group of columns, or over a tile of values, is
// exact: 64 * 8191 * 4095 < 2^31.
inline constexpr int kLargestWord = 4095;        // of keys and values
inline constexpr int kLargestFactorWord = 8191;  // of queries, and of the weights of values
inline constexpr int kWordTile = 64;             // keys, or values, that a kernel takes at most

constexpr int64_t WordScalesOffset(int cols) {
  return int64_t{2} * kCacheGroup * NumCacheGroups(cols);
}
// A multiple of 32.
constexpr int64_t WordRowBytes(int cols) {
  return (WordScalesOffset(cols) + int64_t{4} * NumCacheGroups(cols) + 31) / 32 * 32;
}

// How the rows of the latent cache are stored. Attention computes in float32 on kF32, and on words
// of the others.
enum class CacheType : uint8_t {
  kF32,
  kBF16,  // rounded to nearest, ties to even
  kQ8,    // bytes, with a float32 scale for every 64 values: max |x| / 127
  kQ16,   // rows of words: attention takes them as they lie
};
inline constexpr int kNumCacheTypes = 4;

// Bytes of a row of `cols` values. Of kQ8 the codes come first, then the scales.
constexpr int64_t CacheRowBytes(CacheType type, int cols) {
  switch (type) {
    case CacheType::kF32:
      return int64_t{4} * cols;
    case CacheType::kBF16:
      return int64_t{2} * cols;
    case CacheType::kQ8:
      // The scales stand at a multiple of four.
      return int64_t{(cols + 3) / 4 * 4} + int64_t{4} * NumCacheGroups(cols);
    case CacheType::kQ16:
      return WordRowBytes(cols);
  }
  return 0;
}

}  // namespace hadal
