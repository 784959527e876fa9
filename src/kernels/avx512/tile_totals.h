// What rows have summed up for the outputs of some tiles: totals [rows, kTiles, 16], aligned to 64.
#pragma once

#include "kernels/avx512/ints.h"
#include "kernels/kernel_table.h"

namespace hadal::avx512 {
namespace {

constexpr int kRowBlock = 60;   // rows whose totals of two tiles (8 KB) stay in the first cache
constexpr int kSpanCols = 512;  // columns of which the weights of two tiles stay there, too
constexpr int kManyRows = 6;    // with two tiles, twelve sums and twelve totals in registers

template <int kTiles>
HADAL_INLINE void ClearTotals(int num_rows, float* totals) {
  for (int i = 0; i < num_rows * kTiles * kTileRows; i += 16) {
    _mm512_store_ps(totals + i, _mm512_setzero_ps());
  }
}

// To registers, and back.
template <int kRows, int kTiles>
HADAL_INLINE void LoadTotals(const float* totals, __m512 (&sums)[kRows][kTiles]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int tile = 0; tile < kTiles; ++tile) {
      sums[r][tile] = _mm512_load_ps(totals + (r * kTiles + tile) * kTileRows);
    }
  }
}
template <int kRows, int kTiles>
HADAL_INLINE void StoreTotals(const __m512 (&sums)[kRows][kTiles], float* totals) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int tile = 0; tile < kTiles; ++tile) {
      _mm512_store_ps(totals + (r * kTiles + tile) * kTileRows, sums[r][tile]);
    }
  }
}

// As the results of rows [first, first + num_rows) and outputs from `o` on, as far as there are
// any.
template <int kTiles>
HADAL_INLINE void WriteTotals(const RoundedMatMulArgs& args, int first, int num_rows, int o,
                              const float* totals) {
  for (int t = 0; t < num_rows; ++t) {
    for (int tile = 0; tile < kTiles; ++tile, totals += kTileRows) {
      const int begin = o + tile * kTileRows;
      const __mmask16 lanes = FirstLanes(args.num_outputs - begin);
      float* out = args.out + (first + t) * args.out_stride + begin;
      __m512 sum = _mm512_load_ps(totals);
      if (args.accumulate) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, out), sum);
      _mm512_mask_storeu_ps(out, lanes, sum);
    }
  }
}

// Where row t of a product begins.
HADAL_INLINE const char* RowOf(const RoundedMatMulArgs& args, int t) {
  const int64_t row = args.row_ids != nullptr ? args.row_ids[t] : t;
  return reinterpret_cast<const char*>(args.x) + row * args.row_bytes;
}

}  // namespace
}  // namespace hadal::avx512
