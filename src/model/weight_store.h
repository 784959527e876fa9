// The weights of a model under the names of their roles. Matrices are views into the checkpoint's
// mapping, in the number format of the file; small vectors are owned float32. Shapes are checked
// here, so that nothing behind this door asks for them again. Shapes below: [output features, input
// features]; row orders inside fused projections: specification, 2.2.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "model/model_config.h"
#include "tensor/buffer.h"
#include "tensor/quantized_matrix.h"

namespace hadal {

// V3.2's choice of cached tokens. Empty in models without has_indexer(). Specification, 6.1.
struct IndexerWeights {
  QuantizedMatrix q_b;                     // [index_n_heads * index_head_dim, q_lora_rank]
  QuantizedMatrix k;                       // [index_head_dim, hidden_size]
  QuantizedMatrix weights;                 // [index_n_heads, hidden_size]
  std::vector<float> k_norm, k_norm_bias;  // [index_head_dim], a LayerNorm with bias
};

// Multi-head latent attention. Specification, 3.3.
struct AttentionWeights {
  QuantizedMatrix q;             // [heads * qk_head_dim, hidden_size]; empty with q_lora_rank
  QuantizedMatrix q_a;           // [q_lora_rank, hidden_size]; empty without q_lora_rank
  std::vector<float> q_a_norm;   // [q_lora_rank]
  QuantizedMatrix q_b;           // [heads * qk_head_dim, q_lora_rank]
  QuantizedMatrix kv_a;          // [kv_lora_rank + qk_rope_head_dim, hidden_size]
  std::vector<float> kv_a_norm;  // [kv_lora_rank]
  QuantizedMatrix kv_b;          // [heads * (qk_nope_head_dim + v_head_dim), kv_lora_rank]
  QuantizedMatrix out;           // [hidden_size, heads * v_head_dim]
  IndexerWeights indexer;
};

// A dense SwiGLU, or a mixture: router, routed experts, and the shared experts as one SwiGLU.
struct FeedForwardWeights {
  // The dense layer [intermediate_size, hidden_size], or the shared experts together [n_shared *
  // moe_intermediate_size, hidden_size]; empty in a mixture without shared experts. `down` is the
  // other way round.
  QuantizedMatrix gate, up, down;
  QuantizedMatrix router;              // [n_routed_experts, hidden_size]; empty in a dense layer
  std::vector<float> correction_bias;  // [n_routed_experts]; empty unless topk_method is noaux_tc
  // One per routed expert: [moe_intermediate_size, hidden_size], and down the other way round.
  std::vector<QuantizedMatrix> expert_gate, expert_up, expert_down;
};

struct LayerWeights {
  std::vector<float> input_norm, post_attention_norm;  // [hidden_size]
  AttentionWeights attention;
  FeedForwardWeights feed_forward;
};

// The multi-token-prediction layer. Specification, 2.6 and 5.1.
struct MtpWeights {
  QuantizedMatrix embedding, head;  // its own, or the main model's where the file has none
  std::vector<float> enorm, hnorm;  // [hidden_size]: of the embedding, of the hidden state
  QuantizedMatrix eh_proj;          // [hidden_size, 2 * hidden_size], embedding first
  LayerWeights layer;
  std::vector<float> shared_head_norm;  // [hidden_size]
};

struct ModelWeights {
  QuantizedMatrix embedding;  // [vocab_size, hidden_size]
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [hidden_size]
  QuantizedMatrix head;           // [vocab_size, hidden_size]; the embedding where they are tied
  std::optional<MtpWeights> mtp;  // absent when the config or the checkpoint has none

  // Matrices of exports, unpacked, each in the memory of its own.
  std::vector<Buffer> unpacked;

  Buffer resident;  // the matrices, when they were copied out of the files or rounded at load

  // Scales that the file holds in a narrower type, as float32; matrices point into them.
  std::vector<std::unique_ptr<float[]>> converted_scales;
  // kv_b matrices whose halves the file holds apart.
  std::vector<std::vector<float>> joined;
};

// Binds every weight of `config`, which must stem from the same checkpoint; the result points into
// `checkpoint` and must not outlive it. kCorrupt with all missing, misshapen and unreadable tensors
// in one line, their numbers, and how many tensors and files were found; kUnsupported when the
// names are those of another layout.
// Matrices of packed exports are unpacked, one after another, with `num_threads` threads;
// kResourceExhausted when memory is short.
Result<ModelWeights> BindWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                                 int num_threads = 1);

}  // namespace hadal
