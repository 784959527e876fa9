// Sums of rows, each with a factor: many queries take the same rows, each with factors of its own.
// Every element is one chain of fused multiply-adds in the order of the rows.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/vec.h"
#include "kernels/kernel_table.h"

namespace hadal::avx2 {
namespace {

// Rows at a time: for so many, the columns of a tile stay in the first cache while all queries
// pass.
constexpr int kCombineRows = 64;

// out[q, 0..8 kVecs) += sum over j in [first, last) of weights[q, j] * values[j, col..). Not
// inlined: among other code the compiler keeps one of the sums in memory.
template <int kQueries, int kVecs>
[[gnu::noinline]] void AddValues(const float* weights, int64_t weight_stride,
                                 const float* const* values, int64_t col, int first, int last,
                                 float* out, int64_t out_stride) {
  Vec acc[kQueries][kVecs];
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) acc[q][v] = _mm256_loadu_ps(out + q * out_stride + v * 8);
  }
  for (int j = first; j < last; ++j) {
    Vec value[kVecs];
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) value[v] = _mm256_loadu_ps(values[j] + col + v * 8);
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
      const Vec weight = Set(weights[q * weight_stride + j]);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) acc[q][v] = MulAdd(weight, value[v], acc[q][v]);
    }
  }
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) _mm256_storeu_ps(out + q * out_stride + v * 8, acc[q][v]);
  }
}

// The last columns, fewer than eight.
inline void AddValuesTail(const float* weights, const float* const* values, int64_t col, int count,
                          int first, int last, float* out) {
  Vec acc = Load(out, count);
  for (int j = first; j < last; ++j) {
    acc = MulAdd(Set(weights[j]), Load(values[j] + col, count), acc);
  }
  Store(out, acc, count);
}

// Where query q stops in a span that ends before row `last`. Here, null limits mean all rows.
inline int LastOf(const ValueArgs& args, int q, int last) {
  return args.limits == nullptr || args.limits[q] > last ? last : args.limits[q];
}

struct RowSpan {
  int first, last;
};

// kQueries queries over a span of rows and the kVecs * 8 columns from `col` on. Up to the smallest
// of their limits they go together.
template <int kQueries, int kVecs>
void CombineQueries(const ValueArgs& args, int q, const RowSpan& span, int col) {
  int together = span.last;
  for (int i = 0; i < kQueries; ++i) together = LastOf(args, q + i, together);
  if (together < span.first) together = span.first;
  const float* weights = args.weights + q * args.weight_stride;
  float* out = args.out + q * args.out_stride + col;
  AddValues<kQueries, kVecs>(weights, args.weight_stride, args.values, col, span.first, together,
                             out, args.out_stride);
  for (int i = 0; i < kQueries; ++i) {
    const int last = LastOf(args, q + i, span.last);
    if (last <= together) continue;
    AddValues<1, kVecs>(weights + i * args.weight_stride, 0, args.values, col, together, last,
                        out + i * args.out_stride, 0);
  }
}

template <int kVecs>
void CombineAllQueries(const ValueArgs& args, const RowSpan& span, int col) {
  int q = 0;
  for (; q + 6 <= args.num_queries; q += 6) CombineQueries<6, kVecs>(args, q, span, col);
  for (; q + 2 <= args.num_queries; q += 2) CombineQueries<2, kVecs>(args, q, span, col);
  for (; q < args.num_queries; ++q) CombineQueries<1, kVecs>(args, q, span, col);
}

// All queries and columns over one span of rows.
inline void CombineSpan(const ValueArgs& args, const RowSpan& span) {
  int col = 0;
  if (args.num_queries == 1) {  // one query has no other to hide the latency of its sums
    for (; col + 64 <= args.dim; col += 64) CombineQueries<1, 8>(args, 0, span, col);
  }
  for (; col + 16 <= args.dim; col += 16) CombineAllQueries<2>(args, span, col);
  for (; col + 8 <= args.dim; col += 8) CombineAllQueries<1>(args, span, col);
  if (col == args.dim) return;
  for (int q = 0; q < args.num_queries; ++q) {
    AddValuesTail(args.weights + q * args.weight_stride, args.values, col, args.dim - col,
                  span.first, LastOf(args, q, span.last), args.out + q * args.out_stride + col);
  }
}

}  // namespace
}  // namespace hadal::avx2
