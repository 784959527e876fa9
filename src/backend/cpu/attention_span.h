// One span of attention: scores, exponentials and weighted values of a few queries, and how spans
// are merged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace hadal {

// Rows of the cache, wherever they lie.
struct CachedRows {
  const std::byte* const* rows = nullptr;
  int num_rows = 0;  // those that are used, then those that will be used next, as far as is known
  CacheType type = CacheType::kF32;
  int cols = 0;
  std::byte* scratch = nullptr;  // kWordTile rows of words
};

// Rows of words (WordRowBytes() tells the layout).
struct WordTile {
  const std::byte* rows;
  int64_t row_bytes;
  int cols;
  const std::byte* next = nullptr;  // the rows that are used next, to be fetched meanwhile
};

// Rows [first, first + count) as words: where they lie, if they are words and follow each other;
// else in the scratch rows.
WordTile TileOfCache(const KernelTable& kernels, const CachedRows& cache, int first, int count);

// Keys and values as words: rows of a rounded cache, which are keys and values at once, or made
// before.
struct WordSource {
  const std::byte* panel = nullptr;   // of the queries, scores' scale in it; null: floats are used
  CachedRows cache;                   // no rows: `keys` and `values` are there
  const std::byte* keys = nullptr;    // [num_keys] rows of key_dim words
  const std::byte* values = nullptr;  // [num_keys] rows of value_dim words
};

// Queries [num_queries, dim], rows query_stride apart, into a panel that gives scores times
// `scale`. `scratch`: num_queries rows of words.
void TurnQueries(const KernelTable& kernels, const float* queries, int64_t query_stride,
                 int num_queries, int dim, float scale, std::byte* scratch, std::byte* panel);

// Queries against the keys and values of one span. Query q sees the first limits[q] of them.
struct SpanArgs {
  const float* queries;  // rows query_stride apart; unused with `words`, as are scale and stride
  int64_t query_stride;
  int num_queries;
  const int32_t* limits;
  const float* const* keys;    // unused with `words`
  const float* const* values;  // unused with `words`
  WordSource words;
  int num_keys;
  int key_dim, value_dim;
  float scale;
  float* scores;  // scratch, rows score_stride apart; with `words` kWordTile apart
  int64_t score_stride;
  float* out;  // [num_queries, value_dim], rows out_stride apart: sum of exp(score - max) * value
  int64_t out_stride;
  float* max;  // [num_queries]; -infinity for a query that sees nothing
  float* sum;  // [num_queries]: sum of exp(score - max)
};

// REQUIRES: num_queries <= kMaxQueries.
inline constexpr int kMaxQueries = kMaxWordQueries;
void AttendSpan(const KernelTable& kernels, const SpanArgs& args);

// Adds the partial (max, sum, out) of the next span to a running one of `dim` values.
void MergeSpan(const KernelTable& kernels, float span_max, float span_sum, const float* span_out,
               int dim, float* max, float* sum, float* out);

}  // namespace hadal
