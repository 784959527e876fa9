// Products of rows with rows, tiled so that both come from the near caches. Each output keeps its
// own eight-lane sum over ascending columns, so tiling never changes a bit.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

// Twelve sums fill the registers beside the operands: 4 rows x 3 outputs, or 1 x 12.
constexpr int kTileOutputs = 12;
// Columns at a time: 12 KB of decoded weights and 4 KB of x stay in a 32 KB first cache. A multiple
// of 16.
constexpr int kTileCols = 256;
// Rows at a time: their sums (48 KB) and their x (128 KB) stay in the second cache.
constexpr int kTileRows = 128;

// Sums of one tile: lanes of (row, output) start at (row * kTileOutputs + output) * 8.
struct alignas(32) TileSums {
  float lanes[kTileRows * kTileOutputs * 8];
};

// sums[r][o] += lanes of x[r, 0..count) * w[o][0..count).
template <int kRows, int kOutputs>
inline void Accumulate(const float* x, int64_t x_stride, const float* const* w, int count,
                       float* sums) {
  Vec acc[kRows][kOutputs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int o = 0; o < kOutputs; ++o) {
      acc[r][o] = _mm256_load_ps(sums + (r * kTileOutputs + o) * 8);
    }
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
    for (int o = 0; o < kOutputs; ++o) {
      _mm256_store_ps(sums + (r * kTileOutputs + o) * 8, acc[r][o]);
    }
  }
}

// One group of rows against up to kTileOutputs outputs.
template <int kRows>
inline void AccumulateOutputs(const float* x, int64_t x_stride, const float* const* w,
                              int num_outputs, int count, float* sums) {
  constexpr int kOutputs = kTileOutputs / kRows;
  int o = 0;
  for (; o + kOutputs <= num_outputs; o += kOutputs) {
    Accumulate<kRows, kOutputs>(x, x_stride, w + o, count, sums + o * 8);
  }
  for (; o < num_outputs; ++o) Accumulate<kRows, 1>(x, x_stride, w + o, count, sums + o * 8);
}

inline void AccumulateRows(const float* x, int64_t x_stride, int num_rows, const float* const* w,
                           int num_outputs, int count, TileSums* tile) {
  int t = 0;
  const auto sums = [&] { return tile->lanes + t * kTileOutputs * 8; };
  for (; t + 4 <= num_rows; t += 4) {
    AccumulateOutputs<4>(x + t * x_stride, x_stride, w, num_outputs, count, sums());
  }
  switch (num_rows - t) {
    case 3:
      return AccumulateOutputs<3>(x + t * x_stride, x_stride, w, num_outputs, count, sums());
    case 2:
      return AccumulateOutputs<2>(x + t * x_stride, x_stride, w, num_outputs, count, sums());
    case 1:
      return AccumulateOutputs<1>(x + t * x_stride, x_stride, w, num_outputs, count, sums());
    default:
      return;
  }
}

// What becomes of the finished sums of a row: four outputs at `out`, or one.
struct Assign {
  void operator()(float* out, __m128 sums) const { _mm_storeu_ps(out, sums); }
  void operator()(float* out, float sum) const { *out = sum; }
};
struct AddTo {
  void operator()(float* out, __m128 sums) const {
    _mm_storeu_ps(out, _mm_add_ps(_mm_loadu_ps(out), sums));
  }
  void operator()(float* out, float sum) const { *out += sum; }
};
struct AssignScaled {
  float scale;
  void operator()(float* out, __m128 sums) const {
    _mm_storeu_ps(out, _mm_mul_ps(_mm_set1_ps(scale), sums));
  }
  void operator()(float* out, float sum) const { *out = scale * sum; }
};

template <class Finish>
void FinishTile(const TileSums& tile, int num_rows, int num_outputs, const Finish& finish,
                float* out, int64_t out_stride) {
  for (int t = 0; t < num_rows; ++t) {
    const float* sums = tile.lanes + t * kTileOutputs * 8;
    float* row = out + t * out_stride;
    int o = 0;
    for (; o + 4 <= num_outputs; o += 4) {
      const float* four = sums + o * 8;
      finish(row + o, SumEach(_mm256_load_ps(four), _mm256_load_ps(four + 8),
                              _mm256_load_ps(four + 16), _mm256_load_ps(four + 24)));
    }
    for (; o < num_outputs; ++o) finish(row + o, Sum(_mm256_load_ps(sums + o * 8)));
  }
}

struct Rows {
  const float* x;
  int64_t stride;
  int count;
};

// out[t, o] = finish(x[t] . w[o]) over `cols` columns, for outputs [first, last). `source.Get(o,
// num, col, count, pointers)` gives floats [col, col + count) of outputs [o, o + num).
template <class Source, class Finish>
void TiledProduct(const Rows& rows, int cols, int first, int last, Source* source,
                  const Finish& finish, float* out, int64_t out_stride) {
  TileSums tile;
  const float* w[kTileOutputs];
  for (int o = first; o < last; o += kTileOutputs) {
    const int num_outputs = last - o < kTileOutputs ? last - o : kTileOutputs;
    for (int t = 0; t < rows.count; t += kTileRows) {
      const int num_rows = rows.count - t < kTileRows ? rows.count - t : kTileRows;
      for (int i = 0; i < num_rows * kTileOutputs * 8; i += 8) {
        _mm256_store_ps(tile.lanes + i, _mm256_setzero_ps());
      }
      for (int col = 0; col < cols; col += kTileCols) {
        const int count = cols - col < kTileCols ? cols - col : kTileCols;
        source->Get(o, num_outputs, col, count, w);
        AccumulateRows(rows.x + t * rows.stride + col, rows.stride, num_rows, w, num_outputs, count,
                       &tile);
      }
      FinishTile(tile, num_rows, num_outputs, finish, out + t * out_stride + o, out_stride);
    }
  }
}

}  // namespace
}  // namespace hadal::avx2
