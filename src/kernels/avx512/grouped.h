// Grouped weights in registers: sixteen outputs and four columns at a time, in the order of
// block_layout.h, so that nothing is shuffled. Codes are taken without a sign: INT4's as they are,
// INT8's moved by 128; the sum of the row's codes takes that and the zero points away again. Sums
// inside a group are exact, so it does not matter in which order they are formed.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx512/ints.h"
#include "kernels/avx512/rounded_row.h"
#include "kernels/kernel_table.h"

namespace hadal::avx512 {
namespace {

// The scales and the zero points of a tile's group, one int for each output.
HADAL_INLINE __m512 LoadScales(const char* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
HADAL_INLINE __m512i HalfBytes(__m512i bytes, int mask) {
  const __m512i shifts = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi32(4), 1);
  return _mm512_and_si512(_mm512_srlv_epi32(bytes, shifts), _mm512_set1_epi32(mask));
}
HADAL_INLINE __m512i LoadZeroPoints(const char* p) {
  int64_t pairs;
  __builtin_memcpy(&pairs, p, sizeof(pairs));
  return HalfBytes(_mm512_cvtepu8_epi32(_mm_set1_epi64x(pairs)), 15);
}

// The codes of a step: four bytes for each output.
template <QuantFormat format>
HADAL_INLINE __m512i LoadStep(const char* codes, int step) {
  if constexpr (format == QuantFormat::kInt4Group) {
    const auto* pairs = reinterpret_cast<const __m256i*>(codes + 32 * step);
    return HalfBytes(_mm512_broadcast_i64x4(_mm256_loadu_si256(pairs)), 0x0F0F0F0F);
  } else {
    return _mm512_xor_si512(LoadInts(codes + 64 * step), _mm512_set1_epi8(-128));
  }
}

// What the codes of a format without zero points are moved by.
template <QuantFormat format>
constexpr int kMovedBy = format == QuantFormat::kInt4Group ? 8 : 128;

// Some neighbouring tiles of a weight as they are stored: where a block of the first one begins.
template <QuantFormat format, bool kZeros>
struct StoredTiles {
  const char* block;
  int64_t tile_bytes;
  int code_bytes;  // of the block
  int64_t ahead;   // how far behind what is used to fetch

  HADAL_INLINE __m512i Step(int tile, int64_t col, int step) const {
    constexpr int kPieceBytes = 8 * StepBytes(format);
    return LoadStep<format>(block + tile * tile_bytes + col / 32 * kPieceBytes, step);
  }
  HADAL_INLINE __m512 Scales(int tile) const {
    return LoadScales(block + tile * tile_bytes + code_bytes);
  }
  HADAL_INLINE __m512i ZeroPoints(int tile) const {
    return LoadZeroPoints(block + tile * tile_bytes + code_bytes + 2 * kTileRows);
  }
  HADAL_INLINE void PrefetchAhead(int tile, int64_t col) const {
    constexpr int kPieceBytes = 8 * StepBytes(format);
    Prefetch<kPieceBytes + 64>(block + tile * tile_bytes + col / 32 * kPieceBytes + ahead);
  }
};

// Where the codes of each row stand, and from there on the tail of the group.
template <int kRows>
struct RowCodes {
  const char* codes[kRows];
  int64_t tail;

  // To the next group.
  HADAL_INLINE void Advance(int group_cols) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) codes[r] += group_cols;
    tail += kTailBytes - group_cols;
  }
};

// totals[r] [kTiles, 16] += one group of kRows rows against kTiles tiles:
//   fma(group's sum, weight scale * x scale, totals[r]).
template <int kRows, int kTiles, QuantFormat format, bool kZeros>
HADAL_INLINE void AddGroup(const StoredTiles<format, kZeros>& tiles, int group_cols,
                           const RowCodes<kRows>& x, __m512 (&totals)[kRows][kTiles]) {
  __m512i sums[kRows][kTiles];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512i minus_sum = BroadcastWord(x.codes[r] + x.tail);
    if (!kZeros) {
      __m512i moved = _mm512_setzero_si512();
      AddWordProducts(_mm512_set1_epi32(kMovedBy<format>), minus_sum, &moved);
#pragma GCC unroll 4
      for (int tile = 0; tile < kTiles; ++tile) sums[r][tile] = moved;
    } else {
#pragma GCC unroll 4
      for (int tile = 0; tile < kTiles; ++tile) {
        sums[r][tile] = _mm512_setzero_si512();
        AddWordProducts(tiles.ZeroPoints(tile), minus_sum, &sums[r][tile]);
      }
    }
  }
  for (int64_t col = 0; col < group_cols; col += 32) {
#pragma GCC unroll 4
    for (int tile = 0; tile < kTiles; ++tile) tiles.PrefetchAhead(tile, col);
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      __m512i w[kTiles];
#pragma GCC unroll 4
      for (int tile = 0; tile < kTiles; ++tile) w[tile] = tiles.Step(tile, col, step);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i four = BroadcastWord(x.codes[r] + col + 4 * step);
#pragma GCC unroll 4
        for (int tile = 0; tile < kTiles; ++tile) AddByteProducts(w[tile], four, &sums[r][tile]);
      }
    }
  }
  __m512 scales[kTiles];
#pragma GCC unroll 4
  for (int tile = 0; tile < kTiles; ++tile) scales[tile] = tiles.Scales(tile);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 x_scale = BroadcastFloat(x.codes[r] + x.tail + kTailScale);
#pragma GCC unroll 4
    for (int tile = 0; tile < kTiles; ++tile) {
      const __m512 sum = _mm512_cvtepi32_ps(sums[r][tile]);
      totals[r][tile] = _mm512_fmadd_ps(sum, _mm512_mul_ps(scales[tile], x_scale), totals[r][tile]);
    }
  }
}

}  // namespace
}  // namespace hadal::avx512
