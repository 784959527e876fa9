// One span of attention: scores, exponentials and weighted values of a few queries, and how spans
// are merged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace hadal {

// Keys and values as words (WordRowBytes() tells the layout), brought there a tile at a time from
// rows of a rounded cache, which are keys and values at once, or made before.
struct WordSource {
  std::byte* queries =
      nullptr;  // scratch: kMaxQueries rows of key_dim words; null: floats are used

  const std::byte* const* cache_rows = nullptr;  // null: `keys` and `values` are there
  CacheType type = CacheType::kF32;
  int cache_cols = 0;
  std::byte* tile = nullptr;  // scratch: kWordTile rows of cache_cols words

  const std::byte* keys = nullptr;    // [num_keys] rows of key_dim words
  const std::byte* values = nullptr;  // [num_keys] rows of value_dim words
};

// Queries against the keys and values of one span. Query q sees the first limits[q] of them.
struct SpanArgs {
  const float* queries;  // rows query_stride apart
  int64_t query_stride;
  int num_queries;
  const int32_t* limits;
  const float* const* keys;    // unused with `words`
  const float* const* values;  // unused with `words`
  WordSource words;
  int num_keys;
  int key_dim, value_dim;
  float scale;
  float* scores;  // scratch, rows score_stride apart
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
