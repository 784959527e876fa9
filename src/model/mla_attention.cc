#include "model/mla_attention.h"

namespace hadal {

HeadShape AttentionShape(const ModelConfig& config) {
  return {.num_heads = config.num_attention_heads,
          .qk_nope_head_dim = config.qk_nope_head_dim,
          .qk_rope_head_dim = config.qk_rope_head_dim,
          .v_head_dim = config.v_head_dim,
          .kv_lora_rank = config.kv_lora_rank};
}

MlaAttention::MlaAttention(const ModelConfig& config, const AttentionWeights& weights,
                           int layer_idx, Backend* backend)
    : weights_(weights),
      shape_(AttentionShape(config)),
      eps_(static_cast<float>(config.rms_norm_eps)),
      softmax_scale_(static_cast<float>(config.softmax_scale())),
      layer_idx_(layer_idx),
      backend_(backend) {
  if (config.has_indexer()) indexer_.emplace(config, weights.indexer, layer_idx, backend);
}

void MlaAttention::Forward(const ForwardBatch& batch, LatentCache* cache,
                           Activations* activations) {
  const int num_tokens = batch.num_tokens();
  ProjectInput(num_tokens, activations);
  FinishQueries(num_tokens, activations);
  StoreLatents(batch, cache, activations);
  if (indexer_) indexer_->Select(batch, cache, activations);
  const FloatMatrix attended = activations->attended.Rows(0, num_tokens);
  backend_->LatentAttention({.shape = shape_,
                             .scale = softmax_scale_,
                             .queries = activations->queries.Rows(0, num_tokens),
                             .kv_b = weights_.kv_b,
                             .cache = cache->latents(layer_idx_),
                             .block_tokens = kBlockTokens,
                             .ranges = batch.ranges,
                             .selection = &activations->selection,
                             .out = attended});
  backend_->MatMulAdd(attended, weights_.out, activations->hidden.Rows(0, num_tokens));
}

// W_qa x (or W_q x without a query latent) and W_kva x: one pass over x.
void MlaAttention::ProjectInput(int num_tokens, Activations* activations) {
  const bool has_latent = !weights_.q_a.empty();
  const ProductTarget targets[] = {
      {has_latent ? &weights_.q_a : &weights_.q,
       (has_latent ? activations->query_latent : activations->queries).Rows(0, num_tokens)},
      {&weights_.kv_a, activations->latents.Rows(0, num_tokens)}};
  backend_->MatMulEach(activations->normed.Rows(0, num_tokens), targets);
}

// q = W_qb norm(W_qa x), or W_q x without a query latent; per head [nope ; rope(q)].
void MlaAttention::FinishQueries(int num_tokens, Activations* activations) {
  const FloatMatrix queries = activations->queries.Rows(0, num_tokens);
  if (!weights_.q_a.empty()) {
    const FloatMatrix latent = activations->query_latent.Rows(0, num_tokens);
    backend_->RmsNorm(latent, weights_.q_a_norm, eps_, latent);
    backend_->MatMul(latent, weights_.q_b, queries);
  }
  backend_->Rope({.x = queries,
                  .first = shape_.qk_nope_head_dim,
                  .num_parts = shape_.num_heads,
                  .part_stride = shape_.qk_head_dim(),
                  .size = shape_.qk_rope_head_dim,
                  .style = RopeStyle::kInterleaved,
                  .cos = activations->cos.Rows(0, num_tokens),
                  .sin = activations->sin.Rows(0, num_tokens)});
}

// [c ; kr] = W_kva x; c is normalised, kr is rotated and not normalised.
void MlaAttention::StoreLatents(const ForwardBatch& batch, LatentCache* cache,
                                Activations* activations) {
  const int num_tokens = batch.num_tokens();
  const FloatMatrix latents = activations->latents.Rows(0, num_tokens);
  const FloatMatrix compressed = latents.Cols(0, shape_.kv_lora_rank);
  backend_->RmsNorm(compressed, weights_.kv_a_norm, eps_, compressed);
  backend_->Rope({.x = latents,
                  .first = shape_.kv_lora_rank,
                  .num_parts = 1,
                  .part_stride = 0,
                  .size = shape_.qk_rope_head_dim,
                  .style = RopeStyle::kInterleaved,
                  .cos = activations->cos.Rows(0, num_tokens),
                  .sin = activations->sin.Rows(0, num_tokens)});
  backend_->StoreRows(latents, batch.slots, cache->latents(layer_idx_));
}

}  // namespace hadal
