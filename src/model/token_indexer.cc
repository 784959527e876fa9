#include "model/token_indexer.h"

#include <cmath>

namespace hadal {
namespace {

// The indexer's own, not the model's. Specification, 6.1.
constexpr float kLayerNormEps = 1e-6f;

}  // namespace

TokenIndexer::TokenIndexer(const ModelConfig& config, const IndexerWeights& weights, int layer_idx,
                           Backend* backend)
    : weights_(weights),
      num_heads_(config.index_n_heads),
      head_dim_(config.index_head_dim),
      rope_dim_(config.qk_rope_head_dim),
      topk_(config.index_topk),
      rope_style_(config.is_indexer_rope_interleaved ? RopeStyle::kInterleaved
                                                     : RopeStyle::kHalfSplit),
      layer_idx_(layer_idx),
      backend_(backend) {}

// The rotary part comes first here; the main attention has it last.
void TokenIndexer::Rotate(FloatMatrix x, int num_parts, const Activations& activations) const {
  backend_->Rope({.x = x,
                  .first = 0,
                  .num_parts = num_parts,
                  .part_stride = head_dim_,
                  .size = rope_dim_,
                  .style = rope_style_,
                  .cos = activations.index_cos.Rows(0, x.rows),
                  .sin = activations.index_sin.Rows(0, x.rows)});
}

void TokenIndexer::Select(const ForwardBatch& batch, LatentCache* cache, Activations* activations) {
  const int num_tokens = batch.num_tokens();
  const FloatMatrix normed = activations->normed.Rows(0, num_tokens);
  const FloatMatrix keys = activations->index_keys.Rows(0, num_tokens);
  backend_->MatMul(normed, weights_.k, keys);
  backend_->LayerNorm(keys, weights_.k_norm, weights_.k_norm_bias, kLayerNormEps, keys);
  Rotate(keys, 1, *activations);
  backend_->StoreRows(keys, batch.slots, cache->index_keys(layer_idx_));
  // Tokens that see no more than topk positions attend all of them: nothing to choose.
  if (!batch.has_sparse_range) return;

  const FloatMatrix queries = activations->index_queries.Rows(0, num_tokens);
  const FloatMatrix head_weights = activations->index_weights.Rows(0, num_tokens);
  backend_->MatMul(activations->query_latent.Rows(0, num_tokens), weights_.q_b, queries);
  Rotate(queries, num_heads_, *activations);
  backend_->MatMul(normed, weights_.weights, head_weights);
  const double scale = 1.0 / std::sqrt(static_cast<double>(num_heads_) * head_dim_);
  backend_->SelectPositions({.num_heads = num_heads_,
                             .head_dim = head_dim_,
                             .topk = topk_,
                             .scale = static_cast<float>(scale),
                             .queries = queries,
                             .head_weights = head_weights,
                             .cache = cache->index_keys(layer_idx_),
                             .block_tokens = kBlockTokens,
                             .ranges = batch.ranges,
                             .selection = &activations->selection});
}

}  // namespace hadal
