// All scratch of a forward pass, taken once for the largest step and handed out as views with as
// many rows as the step has tokens.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "model/model_config.h"
#include "tensor/buffer.h"
#include "tensor/matrix.h"

namespace hadal {

class Activations {
 public:
  // kResourceExhausted when memory is short.
  static Result<Activations> Create(const ModelConfig& config, int max_step_tokens,
                                    int max_logit_rows, Backend* backend);

  FloatMatrix hidden;  // [tokens, hidden_size]: the residual stream
  FloatMatrix normed;  // [tokens, hidden_size]: input of a part of a layer; after Forward, the
                       // final norm's output
  FloatMatrix query_latent;    // [tokens, q_lora_rank]
  FloatMatrix queries;         // [tokens, num_attention_heads * qk_head_dim]
  FloatMatrix latents;         // [tokens, latent_dim]: the rows that go into the cache
  FloatMatrix attended;        // [tokens, num_attention_heads * v_head_dim]
  FloatMatrix gated;           // [tokens, widest dense feed-forward]
  FloatMatrix mixed;           // [tokens, hidden_size]: what a feed-forward adds to the stream
  FloatMatrix router_scores;   // [tokens, n_routed_experts]
  FloatMatrix expert_weights;  // [tokens, num_experts_per_tok]
  MatrixView<int32_t> expert_ids;
  FloatMatrix index_queries;  // [tokens, index_n_heads * index_head_dim]
  FloatMatrix index_keys;     // [tokens, index_head_dim]
  FloatMatrix index_weights;  // [tokens, index_n_heads]
  FloatMatrix cos, sin;       // [tokens, qk_rope_head_dim / 2]
  // The same without YaRN's amplitude, of models with an indexer.
  FloatMatrix index_cos, index_sin;
  FloatMatrix logit_inputs;  // [logit rows, hidden_size]
  FloatMatrix logits;        // [logit rows, vocab_size]
  FloatMatrix mtp_hidden;    // [tokens, hidden_size]: the main model's final hidden states, for the
                             // MTP module
  FloatMatrix mtp_joined;    // [tokens, 2 * hidden_size]
  PositionSelection selection;

 private:
  Buffer buffer_;
  std::vector<int32_t> indices_;
};

}  // namespace hadal
