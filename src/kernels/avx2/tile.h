// Products of rows with rows, tiled so that both come from the near caches. Each output keeps its
// own eight-lane sum over ascending columns, so tiling never changes a bit.
//
// Sizes were chosen on Zen 3 (32 KB and 512 KB of cache a core) at 48 to 512 rows: of 103 Gop/s
// that registers alone reach, spans of 256, 384, 512 columns give 66 to 70, 70, 73.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

// Twelve sums fill the registers beside the operands: 4 rows x 3 outputs, or 1 x 12.
constexpr int kTileOutputs = 12;
// Columns of a span, at most: 24 KB of decoded weights and 8 KB of x fill the first cache. A
// multiple of 16.
constexpr int kMaxSpan = 512;
// Rows and outputs of a block: its sums (96 KB) and its x (128 KB) stay in the second cache while
// the x of a span meets all outputs of the block.
constexpr int kBlockRows = 64;
constexpr int kBlockOutputs = 48;
constexpr int kBlockTiles = kBlockOutputs / kTileOutputs;

// Sums of a block, tile by tile. Those of row r and output o of a tile are the eight lanes from
// LanesOf(r, o) on.
constexpr int LanesOf(int r, int o) { return (r * kTileOutputs + o) * 8; }

struct alignas(32) BlockSums {
  float lanes[kBlockTiles][kBlockRows * kTileOutputs * 8];
};

// sums[r][o] += lanes of x[r, 0..count) * w[o][0..count). Not inlined: among other code the
// compiler keeps one of the twelve sums in memory, which halves the speed.
template <int kRows, int kOutputs>
[[gnu::noinline]] void Accumulate(const float* x, int64_t x_stride, const float* const* w,
                                  int count, float* sums) {
  Vec acc[kRows][kOutputs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int o = 0; o < kOutputs; ++o) acc[r][o] = _mm256_load_ps(sums + LanesOf(r, o));
  }
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    Vec wv[kOutputs];
#pragma GCC unroll 16
    for (int o = 0; o < kOutputs; ++o) {
      if (kRows > 1) wv[o] = _mm256_loadu_ps(w[o] + i);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec xv = _mm256_loadu_ps(x + r * x_stride + i);
#pragma GCC unroll 16
      for (int o = 0; o < kOutputs; ++o) {
        acc[r][o] = MulAdd(xv, kRows > 1 ? wv[o] : _mm256_loadu_ps(w[o] + i), acc[r][o]);
      }
    }
  }
  if (i < count) {
    const __m256i mask = MaskFirst(count - i);
    for (int r = 0; r < kRows; ++r) {
      const Vec xv = _mm256_maskload_ps(x + r * x_stride + i, mask);
      for (int o = 0; o < kOutputs; ++o) {
        acc[r][o] = MulAdd(xv, _mm256_maskload_ps(w[o] + i, mask), acc[r][o]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int o = 0; o < kOutputs; ++o) _mm256_store_ps(sums + LanesOf(r, o), acc[r][o]);
  }
}

// One group of rows against the outputs of a tile.
template <int kRows>
void AccumulateOutputs(const float* x, int64_t x_stride, const float* const* w, int num_outputs,
                       int count, float* sums) {
  constexpr int kOutputs = kTileOutputs / kRows;
  int o = 0;
  for (; o + kOutputs <= num_outputs; o += kOutputs) {
    Accumulate<kRows, kOutputs>(x, x_stride, w + o, count, sums + LanesOf(0, o));
  }
  for (; o < num_outputs; ++o)
    Accumulate<kRows, 1>(x, x_stride, w + o, count, sums + LanesOf(0, o));
}

struct Rows {
  const float* x;
  int64_t stride;
  int count;

  Rows Part(int first, int num, int col) const { return {x + first * stride + col, stride, num}; }
};

inline void AccumulateTile(const Rows& rows, const float* const* w, int num_outputs, int count,
                           float* sums) {
  int t = 0;
  for (; t + 4 <= rows.count; t += 4) {
    AccumulateOutputs<4>(rows.x + t * rows.stride, rows.stride, w, num_outputs, count,
                         sums + LanesOf(t, 0));
  }
  const float* x = rows.x + t * rows.stride;
  switch (rows.count - t) {
    case 3:
      return AccumulateOutputs<3>(x, rows.stride, w, num_outputs, count, sums + LanesOf(t, 0));
    case 2:
      return AccumulateOutputs<2>(x, rows.stride, w, num_outputs, count, sums + LanesOf(t, 0));
    case 1:
      return AccumulateOutputs<1>(x, rows.stride, w, num_outputs, count, sums + LanesOf(t, 0));
    default:
      return;
  }
}

// What becomes of a finished sum.
struct Finish {
  float scale;
  bool accumulate;

  void operator()(float* out, float sum) const {
    *out = accumulate ? *out + scale * sum : scale * sum;
  }
  void operator()(float* out, __m128 sums) const {
    sums = _mm_mul_ps(_mm_set1_ps(scale), sums);
    _mm_storeu_ps(out, accumulate ? _mm_add_ps(_mm_loadu_ps(out), sums) : sums);
  }
};

inline void FinishTile(const float* sums, int num_rows, int num_outputs, const Finish& finish,
                       float* out, int64_t out_stride) {
  for (int t = 0; t < num_rows; ++t) {
    const auto lanes = [&](int o) { return _mm256_load_ps(sums + LanesOf(t, o)); };
    float* row = out + t * out_stride;
    int o = 0;
    for (; o + 4 <= num_outputs; o += 4) {
      finish(row + o, SumEach(lanes(o), lanes(o + 1), lanes(o + 2), lanes(o + 3)));
    }
    for (; o < num_outputs; ++o) finish(row + o, Sum(lanes(o)));
  }
}

// Spans of about equal width: a last span of a few columns would cost as much as a full one.
inline int SpanOf(int cols) {
  const int num_spans = (cols + kMaxSpan - 1) / kMaxSpan;
  return ((cols + num_spans - 1) / num_spans + 15) / 16 * 16;
}

// One block of rows and outputs; see TiledProduct.
template <class Source>
void BlockProduct(const Rows& rows, int cols, int first, int num_outputs, Source* source,
                  const Finish& finish, float* out, int64_t out_stride) {
  BlockSums sums;
  const int num_tiles = (num_outputs + kTileOutputs - 1) / kTileOutputs;
  const auto outputs_of = [&](int tile) {
    const int rest = num_outputs - tile * kTileOutputs;
    return rest < kTileOutputs ? rest : kTileOutputs;
  };
  for (int tile = 0; tile < num_tiles; ++tile) {
    for (int i = 0; i < LanesOf(rows.count, 0); i += 8) {
      _mm256_store_ps(sums.lanes[tile] + i, _mm256_setzero_ps());
    }
  }
  const int span = SpanOf(cols);
  for (int col = 0; col < cols; col += span) {
    const int count = cols - col < span ? cols - col : span;
    for (int tile = 0; tile < num_tiles; ++tile) {
      const float* w[kTileOutputs];
      source->Get(first + tile * kTileOutputs, outputs_of(tile), col, count, w);
      AccumulateTile(rows.Part(0, rows.count, col), w, outputs_of(tile), count, sums.lanes[tile]);
    }
  }
  for (int tile = 0; tile < num_tiles; ++tile) {
    FinishTile(sums.lanes[tile], rows.count, outputs_of(tile), finish, out + tile * kTileOutputs,
               out_stride);
  }
}

// out[t, o] = finish(x[t] . w[first + o]) over `cols` columns. `source->Get(o, num, col, count,
// pointers)` gives floats [col, col + count) of outputs [o, o + num).
template <class Source>
void TiledProduct(const Rows& rows, int cols, int first, int num_outputs, Source* source,
                  const Finish& finish, float* out, int64_t out_stride) {
  for (int t = 0; t < rows.count; t += kBlockRows) {
    const int num_rows = rows.count - t < kBlockRows ? rows.count - t : kBlockRows;
    for (int o = 0; o < num_outputs; o += kBlockOutputs) {
      const int num = num_outputs - o < kBlockOutputs ? num_outputs - o : kBlockOutputs;
      BlockProduct(rows.Part(t, num_rows, 0), cols, first + o, num, source, finish,
                   out + t * out_stride + o, out_stride);
    }
  }
}

}  // namespace
}  // namespace hadal::avx2
