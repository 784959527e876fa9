#include "backend/cpu/attention_span.h"

#include <limits>

namespace hadal {

namespace {

// Rows [first, first + count) as floats.
const float* const* LoadTile(const KernelTable& kernels, const CachedRows& cached, int first,
                             int count) {
  for (int i = 0; i < count; ++i) {
    float* to = cached.tile + int64_t{i} * cached.cols;
    kernels.load_cache_row[static_cast<size_t>(cached.type)](cached.rows[first + i], cached.cols,
                                                             to);
    cached.tile_rows[i] = to;
  }
  return cached.tile_rows;
}

// body(rows, first, count) for the keys or values [0, num): all at once, or tile by tile.
template <class Body>
void ForTiles(const KernelTable& kernels, const SpanArgs& args, const float* const* rows, int num,
              const Body& body) {
  if (num == 0) return;
  if (args.cached.rows == nullptr) return body(rows, 0, num);
  for (int first = 0; first < num; first += CachedRows::kTileRows) {
    const int count = std::min(CachedRows::kTileRows, num - first);
    body(LoadTile(kernels, args.cached, first, count), first, count);
  }
}

}  // namespace

void AttendSpan(const KernelTable& kernels, const SpanArgs& args) {
  const int num_seen = *std::max_element(args.limits, args.limits + args.num_queries);
  ForTiles(kernels, args, args.keys, num_seen, [&](const float* const* keys, int first, int count) {
    kernels.attention_scores({.queries = args.queries,
                              .query_stride = args.query_stride,
                              .num_queries = args.num_queries,
                              .keys = keys,
                              .num_keys = count,
                              .dim = args.key_dim,
                              .scale = args.scale,
                              .scores = args.scores + first,
                              .score_stride = args.score_stride});
  });
  for (int q = 0; q < args.num_queries; ++q) {
    std::fill_n(args.out + q * args.out_stride, args.value_dim, 0.0f);
    if (args.limits[q] == 0) {
      args.max[q] = -std::numeric_limits<float>::infinity();
      args.sum[q] = 0.0f;
      continue;
    }
    float* row = args.scores + q * args.score_stride;
    args.max[q] = kernels.max(row, args.limits[q]);
    args.sum[q] = kernels.exp_and_sum(row, args.limits[q], args.max[q]);
  }
  ForTiles(kernels, args, args.values, num_seen,
           [&](const float* const* values, int first, int count) {
             int32_t limits[kMaxQueries];
             for (int q = 0; q < args.num_queries; ++q) {
               limits[q] = std::clamp(args.limits[q] - first, 0, count);
             }
             kernels.attention_values({.weights = args.scores + first,
                                       .weight_stride = args.score_stride,
                                       .num_queries = args.num_queries,
                                       .limits = limits,
                                       .values = values,
                                       .num_values = count,
                                       .dim = args.value_dim,
                                       .out = args.out,
                                       .out_stride = args.out_stride});
           });
}

void MergeSpan(const KernelTable& kernels, float span_max, float span_sum, const float* span_out,
               int dim, float* max, float* sum, float* out) {
  if (span_sum == 0.0f) return;  // saw nothing
  if (*sum == 0.0f) {            // the first span that saw something
    *max = span_max;
    *sum = span_sum;
    std::copy_n(span_out, dim, out);
    return;
  }
  const float merged_max = std::max(*max, span_max);
  const float factor = std::exp(*max - merged_max);
  const float span_factor = std::exp(span_max - merged_max);
  kernels.scale(out, factor, dim);
  kernels.add_scaled(span_out, span_factor, dim, out);
  *sum = *sum * factor + span_sum * span_factor;
  *max = merged_max;
}

}  // namespace hadal
