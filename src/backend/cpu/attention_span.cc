#include "backend/cpu/attention_span.h"

#include <limits>

namespace hadal {

void AttendSpan(const KernelTable& kernels, const SpanArgs& args) {
  const int num_seen = *std::max_element(args.limits, args.limits + args.num_queries);
  if (num_seen > 0) {
    kernels.attention_scores({.queries = args.queries,
                              .query_stride = args.query_stride,
                              .num_queries = args.num_queries,
                              .keys = args.keys,
                              .num_keys = num_seen,
                              .dim = args.key_dim,
                              .scale = args.scale,
                              .scores = args.scores,
                              .score_stride = args.score_stride});
  }
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
  if (num_seen == 0) return;
  kernels.attention_values({.weights = args.scores,
                            .weight_stride = args.score_stride,
                            .num_queries = args.num_queries,
                            .limits = args.limits,
                            .values = args.values,
                            .num_values = num_seen,
                            .dim = args.value_dim,
                            .out = args.out,
                            .out_stride = args.out_stride});
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
