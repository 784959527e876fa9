// Scores and weighted values, in plain loops.
#include <cmath>

#include "kernels/reference/lane_sum.h"
#include "kernels/reference/parts.h"

namespace hadal::reference {
namespace {

void AttentionScores(const ScoreArgs& args) {
  for (int q = 0; q < args.num_queries; ++q) {
    for (int j = 0; j < args.num_keys; ++j) {
      LaneSum sum;
      sum.AddProducts(args.queries + q * args.query_stride, args.keys[j], args.dim);
      args.scores[q * args.score_stride + j] = args.scale * sum.Total();
    }
  }
}

void AttentionValues(const ValueArgs& args) {
  for (int q = 0; q < args.num_queries; ++q) {
    float* out = args.out + q * args.out_stride;
    for (int j = 0; j < args.limits[q]; ++j) {
      const float weight = args.weights[q * args.weight_stride + j];
      for (int i = 0; i < args.dim; ++i) out[i] = std::fma(weight, args.values[j][i], out[i]);
    }
  }
}

}  // namespace

void AddAttention(KernelTable* table) {
  table->attention_scores = AttentionScores;
  table->attention_values = AttentionValues;
}

}  // namespace hadal::reference
