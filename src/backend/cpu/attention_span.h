// One span of attention: scores, exponentials and weighted values of a few queries, and how spans
// are merged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace hadal {

// Rows of a cache that are not float32, as keys and values at once: brought to float32 a tile at a
// time.
struct CachedRows {
  static constexpr int kTileRows = 64;
  CacheType type = CacheType::kF32;
  const std::byte* const* rows = nullptr;  // null: none
  int cols = 0;
  float* tile = nullptr;              // scratch [kTileRows, cols]
  const float** tile_rows = nullptr;  // scratch [kTileRows]
};

// Queries against the keys and values of one span. Query q sees the first limits[q] of them.
struct SpanArgs {
  const float* queries;  // rows query_stride apart
  int64_t query_stride;
  int num_queries;
  const int32_t* limits;
  const float* const* keys;    // unused with `cached`
  const float* const* values;  // unused with `cached`
  CachedRows cached;
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
inline constexpr int kMaxQueries = 64;
void AttendSpan(const KernelTable& kernels, const SpanArgs& args);

// Adds the partial (max, sum, out) of the next span to a running one of `dim` values.
void MergeSpan(const KernelTable& kernels, float span_max, float span_sum, const float* span_out,
               int dim, float* max, float* sum, float* out);

}  // namespace hadal
