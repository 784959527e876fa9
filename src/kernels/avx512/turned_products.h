// Products of turned blocked weights with rows rounded to bytes. Two tiles of a weight meet six
// rows at a time, some blocks after another, so that further rows find them in the first cache.
#pragma once

#include "kernels/avx512/blocks.h"
#include "kernels/avx512/tile_totals.h"

namespace hadal::avx512 {
namespace {

// Some neighbouring tiles, from a block on.
template <int kTiles>
struct TurnedTiles {
  const char* block;
  int64_t eight_bytes;  // of eight whole rows

  HADAL_INLINE SixteenRows Rows(int tile) const {
    const char* low = block + 2 * tile * eight_bytes;
    return {low, low + eight_bytes};
  }
  template <int bytes>
  HADAL_INLINE void PrefetchAhead(int64_t ahead) const {
#pragma GCC unroll 4
    for (int eight = 0; eight < 2 * kTiles; ++eight) {
      Prefetch<bytes>(block + eight * eight_bytes + ahead);
    }
  }
};

// totals [kRows, kTiles, 16] += the products of one group of columns, of part `part` of a run.
// Codes without sign are taken as they are, and the words that the row has for it take an offset
// away. Where codes have a sign, the row's are moved by 128 to have none, and 128 times the sum of
// the weight's codes is taken away.
template <QuantFormat format, int part, int kRows, int kTiles>
HADAL_INLINE void AddGroup(const TurnedTiles<kTiles>& tiles, const BlockScales<format>* scales,
                           int run, const RunPlace& place, const char* const (&x)[kRows],
                           __m512 (&totals)[kRows][kTiles]) {
  constexpr int kSteps = ScaleElements(format) / kStepCols;
  const __m512i moved_by = _mm512_set1_epi8(-128);
  __m512i sums[kRows][kTiles], moved[kTiles];
#pragma GCC unroll 2
  for (int tile = 0; tile < kTiles; ++tile) moved[tile] = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    __m512i start = _mm512_setzero_si512();
    if (CodeOffset(format) != 0) {
      AddWordProducts(_mm512_set1_epi16(-CodeOffset(format)),
                      BroadcastWord(x[r] + kRunSumsOffset + 4 * part), &start);
    }
#pragma GCC unroll 2
    for (int tile = 0; tile < kTiles; ++tile) sums[r][tile] = start;
  }
#pragma GCC unroll 8
  for (int step = part * kSteps; step < (part + 1) * kSteps; ++step) {
    __m512i w[kTiles];
#pragma GCC unroll 2
    for (int tile = 0; tile < kTiles; ++tile) {
      w[tile] = LoadCodes<format>(tiles.Rows(tile), place, step);
      if (HasSignedCodes(format)) AddByteProducts(moved_by, w[tile], &moved[tile]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      __m512i four = BroadcastWord(x[r] + kStepCols * step);
      if (HasSignedCodes(format)) four = _mm512_xor_si512(four, moved_by);
#pragma GCC unroll 2
      for (int tile = 0; tile < kTiles; ++tile) {
        if (HasSignedCodes(format)) {
          AddByteProducts(four, w[tile], &sums[r][tile]);
        } else {
          AddByteProducts(w[tile], four, &sums[r][tile]);
        }
      }
    }
  }
  const int group = run * kParts<format> + part;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 x_scale = BroadcastFloat(x[r] + kRunScaleOffset);
#pragma GCC unroll 2
    for (int tile = 0; tile < kTiles; ++tile) {
      __m512i sum = sums[r][tile];
      if (HasSignedCodes(format)) sum = _mm512_sub_epi32(sum, moved[tile]);
      const __m512 scale = _mm512_mul_ps(_mm512_load_ps(scales[tile].scale[group]), x_scale);
      __m512 total = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, totals[r][tile]);
      if constexpr (kHasMin<format>) {
        const __m512 x_sum = BroadcastFloat(x[r] + kRunSumsOffset + 4 * part);
        const __m512 min = _mm512_load_ps(scales[tile].min[group]);
        total = UseOfMin(format) == MinUse::kAdd ? _mm512_fmadd_ps(min, x_sum, total)
                                                 : _mm512_fnmadd_ps(min, x_sum, total);
      }
      totals[r][tile] = total;
    }
  }
}

// `num_blocks` blocks of kTiles tiles against kRows rows, whose runs begin at `x`. `near_end` is
// where what follows the first eight is near.
template <QuantFormat format, int kRows, int kTiles>
[[gnu::noinline]] void AddBlocks(TurnedTiles<kTiles> tiles, int num_blocks, const char* near_end,
                                 const char* (&x)[kRows], float* totals) {
  constexpr int kEightBytes = 8 * SizeOfBlock(format).bytes;
  alignas(64) BlockScales<format> scales[kTiles];
  __m512 sums[kRows][kTiles];
  LoadTotals(totals, sums);
  for (int b = 0; b < num_blocks; ++b, tiles.block += kEightBytes) {
    // Behind the end of an eight comes what the next call takes: the eights behind these.
    const int64_t to_next = tiles.block < near_end ? 0 : (2 * kTiles - 1) * tiles.eight_bytes;
#pragma GCC unroll 2
    for (int tile = 0; tile < kTiles; ++tile) LoadScales<format>(tiles.Rows(tile), &scales[tile]);
    for (int run = 0; run < kRuns<format>; ++run) {
      constexpr int kRunBytes = kEightBytes / kRuns<format>;
      tiles.template PrefetchAhead<kRunBytes>(kFetchAhead + to_next + run * kRunBytes);
      const RunPlace place = PlaceOf<format>(run);
      AddGroup<format, 0>(tiles, scales, run, place, x, sums);
      if constexpr (kParts<format> == 2) AddGroup<format, 1>(tiles, scales, run, place, x, sums);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) x[r] += kRoundedRunBytes;
    }
  }
  StoreTotals(sums, totals);
}

// Outputs [o, o + kTiles * 16) of a product.
template <QuantFormat format, int kTiles>
void ProductOfTiles(const RoundedMatMulArgs& args, int o) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  constexpr int kSpanBlocks = kSpanCols / kSize.elements;
  const int num_blocks = args.weights.cols / kSize.elements;
  const int64_t row_bytes = int64_t{num_blocks} * kSize.bytes;
  const char* data = static_cast<const char*>(args.weights.data) + o * row_bytes;
  const char* near_end = data + 8 * row_bytes - kFetchAhead;
  alignas(64) float totals[kRowBlock * kTiles * kTileRows];
  for (int first = 0; first < args.num_rows; first += kRowBlock) {
    const int num_rows = Least(kRowBlock, args.num_rows - first);
    ClearTotals<kTiles>(num_rows, totals);
    for (int block = 0; block < num_blocks; block += kSpanBlocks) {
      const TurnedTiles<kTiles> tiles = {data + int64_t{8} * block * kSize.bytes, 8 * row_bytes};
      const int64_t x_offset = int64_t{block} * kRuns<format> * kRoundedRunBytes;
      ForRowTiles<kManyRows>(num_rows, [&](auto rows, int r) {
        const char* x[rows.kCount];
        for (int i = 0; i < rows.kCount; ++i) x[i] = RowOf(args, first + r + i) + x_offset;
        AddBlocks<format, rows.kCount, kTiles>(tiles, Least(kSpanBlocks, num_blocks - block),
                                               near_end, x, totals + r * kTiles * kTileRows);
      });
    }
    WriteTotals<kTiles>(args, first, num_rows, o, totals);
  }
}

template <QuantFormat format>
void TurnedMatMul(const RoundedMatMulArgs& args) {
  int o = 0;
  for (; o + 2 * kTileRows <= args.num_outputs; o += 2 * kTileRows) {
    ProductOfTiles<format, 2>(args, o);
  }
  if (o < args.num_outputs) ProductOfTiles<format, 1>(args, o);
}

template <QuantFormat format>
void AddTurned(KernelTable* table) {
  table->turned_matmul[BlockedIdx(format)] = TurnedMatMul<format>;
}

}  // namespace
}  // namespace hadal::avx512
