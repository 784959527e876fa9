#include "model/activations.h"

#include <algorithm>

#include "base/types.h"

namespace hadal {
namespace {

// Either adds up what is asked for, or hands it out.
class Carver {
 public:
  explicit Carver(std::byte* data) : data_(data) {}
  void Take(int rows, int cols, FloatMatrix* out) {
    if (data_ != nullptr) *out = {reinterpret_cast<float*>(data_ + used_), rows, cols, cols};
    const int64_t bytes = static_cast<int64_t>(rows) * cols * static_cast<int64_t>(sizeof(float));
    used_ += RoundUp<int64_t>(bytes, 64);
  }
  int64_t used() const { return used_; }

 private:
  std::byte* data_;
  int64_t used_ = 0;
};

}  // namespace

Result<Activations> Activations::Create(const ModelConfig& config, int max_step_tokens,
                                        int max_logit_rows, Backend* backend) {
  Activations a;
  const int tokens = max_step_tokens, hidden = config.hidden_size,
            heads = config.num_attention_heads;
  const int index_tokens = config.has_indexer() ? tokens : 0;
  const bool has_mtp = config.num_nextn_predict_layers > 0;
  const int widest =
      std::max(config.intermediate_size, config.n_shared_experts * config.moe_intermediate_size);
  const auto carve = [&](Carver carver) {
    carver.Take(tokens, hidden, &a.hidden);
    carver.Take(tokens, hidden, &a.normed);
    carver.Take(tokens, config.q_lora_rank, &a.query_latent);
    carver.Take(tokens, heads * config.qk_head_dim(), &a.queries);
    carver.Take(tokens, config.latent_dim(), &a.latents);
    carver.Take(tokens, heads * config.v_head_dim, &a.attended);
    carver.Take(tokens, widest, &a.gated);
    carver.Take(tokens, hidden, &a.mixed);
    carver.Take(tokens, config.n_routed_experts, &a.router_scores);
    carver.Take(tokens, config.num_experts_per_tok, &a.expert_weights);
    carver.Take(tokens, config.index_n_heads * config.index_head_dim, &a.index_queries);
    carver.Take(tokens, config.index_head_dim, &a.index_keys);
    carver.Take(tokens, config.index_n_heads, &a.index_weights);
    carver.Take(tokens, config.qk_rope_head_dim / 2, &a.cos);
    carver.Take(tokens, config.qk_rope_head_dim / 2, &a.sin);
    carver.Take(index_tokens, config.qk_rope_head_dim / 2, &a.index_cos);
    carver.Take(index_tokens, config.qk_rope_head_dim / 2, &a.index_sin);
    carver.Take(max_logit_rows, hidden, &a.logit_inputs);
    carver.Take(max_logit_rows, config.vocab_size, &a.logits);
    carver.Take(has_mtp ? tokens : 0, hidden, &a.mtp_hidden);
    carver.Take(has_mtp ? tokens : 0, 2 * hidden, &a.mtp_joined);
    return carver.used();
  };
  ASSIGN_OR_RETURN(a.buffer_, backend->Allocate(carve(Carver(nullptr))));
  carve(Carver(a.buffer_.data()));

  const size_t num_ids =
      static_cast<size_t>(tokens) * static_cast<size_t>(config.num_experts_per_tok);
  const size_t num_positions = static_cast<size_t>(tokens) * static_cast<size_t>(config.index_topk);
  a.indices_.resize(num_ids + num_positions + static_cast<size_t>(tokens));
  int32_t* data = a.indices_.data();
  a.expert_ids = {data, tokens, config.num_experts_per_tok, config.num_experts_per_tok};
  a.selection.positions = {data + num_ids, tokens, config.index_topk, config.index_topk};
  a.selection.counts = {data + num_ids + num_positions, static_cast<size_t>(tokens)};
  return a;
}

}  // namespace hadal
