#include "model/step_cost.h"

#include <cmath>
#include <initializer_list>
#include <span>

#include "model/attention_cost.h"

namespace hadal {
namespace {

int64_t Elements(const QuantizedMatrix& matrix) { return int64_t{matrix.rows} * matrix.cols; }

int64_t AttentionBytes(const AttentionWeights& attention) {
  int64_t bytes = 0;
  for (const QuantizedMatrix* matrix :
       {&attention.q, &attention.q_a, &attention.q_b, &attention.kv_a, &attention.kv_b,
        &attention.out, &attention.indexer.q_b, &attention.indexer.k, &attention.indexer.weights}) {
    bytes += MatrixBytes(*matrix);
  }
  return bytes;
}

int64_t Sum(std::span<const QuantizedMatrix> matrices) {
  int64_t bytes = 0;
  for (const QuantizedMatrix& matrix : matrices) bytes += MatrixBytes(matrix);
  return bytes;
}

int64_t ExpertBytes(const FeedForwardWeights& weights) {
  return Sum(weights.expert_gate) + Sum(weights.expert_up) + Sum(weights.expert_down);
}

int64_t DenseBytes(const FeedForwardWeights& weights) {
  return MatrixBytes(weights.gate) + MatrixBytes(weights.up) + MatrixBytes(weights.down) +
         MatrixBytes(weights.router);
}

// Adds up the layers of one step.
class CostSum {
 public:
  CostSum(const ModelConfig& config, const StepShape& shape) : config_(config), shape_(shape) {}

  void AddLayer(const LayerWeights& layer) {
    AddAttention(layer.attention);
    AddFeedForward(layer.feed_forward);
  }

  void AddRows(const QuantizedMatrix& matrix, int64_t rows) {
    cost_.weight_bytes += MatrixBytes(matrix);
    cost_.weight_ops += 2 * rows * Elements(matrix);
  }

  StepCost cost() const { return cost_; }

 private:
  int64_t num_tokens() const { return int64_t{shape_.num_sequences} * shape_.tokens_per_sequence; }
  // Pairs of a token and a position that it sees.
  int64_t num_pairs() const {
    const int64_t tokens = shape_.tokens_per_sequence;
    return shape_.num_sequences * (tokens * shape_.num_cached + tokens * (tokens + 1) / 2);
  }

  void AddAttention(const AttentionWeights& attention) {
    for (const QuantizedMatrix* matrix :
         {&attention.q, &attention.q_a, &attention.q_b, &attention.kv_a, &attention.out,
          &attention.indexer.q_b, &attention.indexer.k, &attention.indexer.weights}) {
      AddRows(*matrix, num_tokens());
    }
    const int64_t rows_seen =
        int64_t{shape_.num_sequences} * (shape_.num_cached + shape_.tokens_per_sequence);
    // Absorbed: W_UK and W_UV meet the new tokens; expanded: all latents that are seen.
    AddRows(attention.kv_b, shape_.is_absorbed ? num_tokens() : rows_seen);
    const AttentionCost per_pair = CountAttentionCost(config_);
    cost_.attention_ops += num_pairs() * (shape_.is_absorbed ? per_pair.absorbed_flops_per_pair
                                                             : per_pair.expanded_flops_per_pair);
    cost_.cache_bytes += rows_seen * shape_.cache_row_bytes;
  }

  void AddFeedForward(const FeedForwardWeights& weights) {
    for (const QuantizedMatrix* matrix :
         {&weights.gate, &weights.up, &weights.down, &weights.router}) {
      AddRows(*matrix, num_tokens());
    }
    if (weights.expert_gate.empty()) return;
    const auto experts = static_cast<double>(config_.n_routed_experts);
    const double missed =
        std::pow(1.0 - config_.num_experts_per_tok / experts, static_cast<double>(num_tokens()));
    cost_.weight_bytes +=
        static_cast<int64_t>((1.0 - missed) * static_cast<double>(ExpertBytes(weights)));
    const int64_t one = Elements(weights.expert_gate[0]) + Elements(weights.expert_up[0]) +
                        Elements(weights.expert_down[0]);
    cost_.weight_ops += 2 * num_tokens() * config_.num_experts_per_tok * one;
  }

  const ModelConfig& config_;
  const StepShape& shape_;
  StepCost cost_;
};

}  // namespace

int64_t MatrixBytes(const QuantizedMatrix& matrix) {
  if (matrix.empty()) return 0;
  if (IsGrouped(matrix.format)) {
    return NumTiles(matrix.rows) * TileBytes(matrix.group_shape(), matrix.cols);
  }
  const int64_t scales =
      matrix.format == QuantFormat::kF8Block128
          ? int64_t{(matrix.rows + kF8BlockSize - 1) / kF8BlockSize} * matrix.scale_stride * 4
          : 0;
  return matrix.rows * RowBytesOf(matrix.format, matrix.cols) + scales;
}

int64_t WeightBytes(const ModelWeights& weights) {
  int64_t bytes = MatrixBytes(weights.embedding);
  if (weights.head.data != weights.embedding.data) bytes += MatrixBytes(weights.head);
  for (const LayerWeights& layer : weights.layers) {
    bytes += AttentionBytes(layer.attention) + DenseBytes(layer.feed_forward) +
             ExpertBytes(layer.feed_forward);
  }
  return bytes;
}

ReadCost CountReadCost(const ModelWeights& weights, int64_t cache_row_bytes) {
  ReadCost cost = {
      .step_bytes = MatrixBytes(weights.head),
      .cache_row_bytes = cache_row_bytes * static_cast<int64_t>(weights.layers.size())};
  int64_t expert_bytes = 0, num_experts = 0;
  for (const LayerWeights& layer : weights.layers) {
    cost.step_bytes += AttentionBytes(layer.attention) + DenseBytes(layer.feed_forward);
    expert_bytes += ExpertBytes(layer.feed_forward);
    num_experts += static_cast<int64_t>(layer.feed_forward.expert_gate.size());
  }
  if (num_experts > 0) cost.expert_bytes = expert_bytes / num_experts;
  return cost;
}

StepCost CostOfStep(const ModelConfig& config, const ModelWeights& weights,
                    const StepShape& shape) {
  CostSum sum(config, shape);
  for (const LayerWeights& layer : weights.layers) sum.AddLayer(layer);
  sum.AddRows(weights.head, shape.logit_rows);
  return sum.cost();
}

}  // namespace hadal
