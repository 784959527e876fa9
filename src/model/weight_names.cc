#include "model/weight_names.h"

#include <fmt/format.h>

#include "base/types.h"
#include "tensor/block_layout.h"

namespace hadal {
namespace {

struct Shape {
  int64_t rows = 0, cols = 0;  // cols 0: a vector
};

enum class Scope : uint8_t { kModel, kLayer, kExpert, kMtp };

// A row of the table. `applies` is asked for rows of layers only.
struct Row {
  WeightRole role;
  WeightPart part;
  Scope scope;
  std::string_view name;  // after "model.layers.{l}." or "model.layers.{l}.mlp.experts.{e}."
  Shape (*shape)(const ModelConfig& c);
  bool (*applies)(const ModelConfig& c, int layer_idx);
};

using C = ModelConfig;
using R = WeightRole;
using P = WeightPart;

bool Always(const C&, int) { return true; }
bool HasQueryLatent(const C& c, int) { return c.q_lora_rank > 0; }
bool HasPlainQuery(const C& c, int) { return c.q_lora_rank == 0; }
bool HasIndexer(const C& c, int) { return c.has_indexer(); }
bool IsDense(const C& c, int l) { return !c.is_moe_layer(l); }
bool IsMoe(const C& c, int l) { return c.is_moe_layer(l); }
bool HasShared(const C& c, int l) { return c.is_moe_layer(l) && c.n_shared_experts > 0; }
bool HasBias(const C& c, int l) {
  return c.is_moe_layer(l) && c.topk_method == TopkMethod::kNoauxTc;
}

Shape Hidden(const C& c) { return {c.hidden_size, 0}; }
Shape Vocabulary(const C& c) { return {c.vocab_size, c.hidden_size}; }
int64_t QueryWidth(const C& c) { return int64_t{c.num_attention_heads} * c.qk_head_dim(); }
int64_t SharedWidth(const C& c) { return int64_t{c.n_shared_experts} * c.moe_intermediate_size; }

constexpr Row kRows[] = {
    {R::kEmbedding, P::kEmbedding, Scope::kModel, "model.embed_tokens.weight", Vocabulary, Always},
    {R::kFinalNorm, P::kNorms, Scope::kModel, "model.norm.weight", Hidden, Always},
    {R::kHead, P::kHead, Scope::kModel, "lm_head.weight", Vocabulary,
     [](const C& c, int) { return !c.tie_word_embeddings; }},

    {R::kInputNorm, P::kNorms, Scope::kLayer, "input_layernorm.weight", Hidden, Always},
    {R::kQ, P::kAttention, Scope::kLayer, "self_attn.q_proj.weight",
     [](const C& c) {
       return Shape{QueryWidth(c), c.hidden_size};
     },
     HasPlainQuery},
    {R::kQA, P::kAttention, Scope::kLayer, "self_attn.q_a_proj.weight",
     [](const C& c) {
       return Shape{c.q_lora_rank, c.hidden_size};
     },
     HasQueryLatent},
    {R::kQANorm, P::kNorms, Scope::kLayer, "self_attn.q_a_layernorm.weight",
     [](const C& c) {
       return Shape{c.q_lora_rank, 0};
     },
     HasQueryLatent},
    {R::kQB, P::kAttention, Scope::kLayer, "self_attn.q_b_proj.weight",
     [](const C& c) {
       return Shape{QueryWidth(c), c.q_lora_rank};
     },
     HasQueryLatent},
    {R::kKvA, P::kAttention, Scope::kLayer, "self_attn.kv_a_proj_with_mqa.weight",
     [](const C& c) {
       return Shape{c.latent_dim(), c.hidden_size};
     },
     Always},
    {R::kKvANorm, P::kNorms, Scope::kLayer, "self_attn.kv_a_layernorm.weight",
     [](const C& c) {
       return Shape{c.kv_lora_rank, 0};
     },
     Always},
    {R::kKvB, P::kAttention, Scope::kLayer, "self_attn.kv_b_proj.weight",
     [](const C& c) {
       return Shape{int64_t{c.num_attention_heads} * (c.qk_nope_head_dim + c.v_head_dim),
                    c.kv_lora_rank};
     },
     Always},
    {R::kOut, P::kAttention, Scope::kLayer, "self_attn.o_proj.weight",
     [](const C& c) {
       return Shape{c.hidden_size, int64_t{c.num_attention_heads} * c.v_head_dim};
     },
     Always},

    {R::kIndexerQB, P::kIndexer, Scope::kLayer, "self_attn.indexer.wq_b.weight",
     [](const C& c) {
       return Shape{int64_t{c.index_n_heads} * c.index_head_dim, c.q_lora_rank};
     },
     HasIndexer},
    {R::kIndexerK, P::kIndexer, Scope::kLayer, "self_attn.indexer.wk.weight",
     [](const C& c) {
       return Shape{c.index_head_dim, c.hidden_size};
     },
     HasIndexer},
    {R::kIndexerKNorm, P::kIndexer, Scope::kLayer, "self_attn.indexer.k_norm.weight",
     [](const C& c) {
       return Shape{c.index_head_dim, 0};
     },
     HasIndexer},
    {R::kIndexerKNormBias, P::kIndexer, Scope::kLayer, "self_attn.indexer.k_norm.bias",
     [](const C& c) {
       return Shape{c.index_head_dim, 0};
     },
     HasIndexer},
    {R::kIndexerWeights, P::kIndexer, Scope::kLayer, "self_attn.indexer.weights_proj.weight",
     [](const C& c) {
       return Shape{c.index_n_heads, c.hidden_size};
     },
     HasIndexer},

    {R::kPostAttentionNorm, P::kNorms, Scope::kLayer, "post_attention_layernorm.weight", Hidden,
     Always},
    // mlp.gate_proj is the gate of the SwiGLU; mlp.gate is the router.
    {R::kGate, P::kDense, Scope::kLayer, "mlp.gate_proj.weight",
     [](const C& c) {
       return Shape{c.intermediate_size, c.hidden_size};
     },
     IsDense},
    {R::kUp, P::kDense, Scope::kLayer, "mlp.up_proj.weight",
     [](const C& c) {
       return Shape{c.intermediate_size, c.hidden_size};
     },
     IsDense},
    {R::kDown, P::kDense, Scope::kLayer, "mlp.down_proj.weight",
     [](const C& c) {
       return Shape{c.hidden_size, c.intermediate_size};
     },
     IsDense},

    {R::kRouter, P::kRouter, Scope::kLayer, "mlp.gate.weight",
     [](const C& c) {
       return Shape{c.n_routed_experts, c.hidden_size};
     },
     IsMoe},
    {R::kCorrectionBias, P::kRouter, Scope::kLayer, "mlp.gate.e_score_correction_bias",
     [](const C& c) {
       return Shape{c.n_routed_experts, 0};
     },
     HasBias},
    // One SwiGLU as wide as all shared experts together.
    {R::kSharedGate, P::kSharedExperts, Scope::kLayer, "mlp.shared_experts.gate_proj.weight",
     [](const C& c) {
       return Shape{SharedWidth(c), c.hidden_size};
     },
     HasShared},
    {R::kSharedUp, P::kSharedExperts, Scope::kLayer, "mlp.shared_experts.up_proj.weight",
     [](const C& c) {
       return Shape{SharedWidth(c), c.hidden_size};
     },
     HasShared},
    {R::kSharedDown, P::kSharedExperts, Scope::kLayer, "mlp.shared_experts.down_proj.weight",
     [](const C& c) {
       return Shape{c.hidden_size, SharedWidth(c)};
     },
     HasShared},
    {R::kExpertGate, P::kExperts, Scope::kExpert, "gate_proj.weight",
     [](const C& c) {
       return Shape{c.moe_intermediate_size, c.hidden_size};
     },
     IsMoe},
    {R::kExpertUp, P::kExperts, Scope::kExpert, "up_proj.weight",
     [](const C& c) {
       return Shape{c.moe_intermediate_size, c.hidden_size};
     },
     IsMoe},
    {R::kExpertDown, P::kExperts, Scope::kExpert, "down_proj.weight",
     [](const C& c) {
       return Shape{c.hidden_size, c.moe_intermediate_size};
     },
     IsMoe},

    {R::kMtpEmbedding, P::kEmbedding, Scope::kMtp, "embed_tokens.weight", Vocabulary, Always},
    {R::kMtpEmbeddingNorm, P::kNorms, Scope::kMtp, "enorm.weight", Hidden, Always},
    {R::kMtpHiddenNorm, P::kNorms, Scope::kMtp, "hnorm.weight", Hidden, Always},
    {R::kMtpProjection, P::kAttention, Scope::kMtp, "eh_proj.weight",
     [](const C& c) {
       return Shape{c.hidden_size, 2 * int64_t{c.hidden_size}};
     },
     Always},
    {R::kMtpHeadNorm, P::kNorms, Scope::kMtp, "shared_head.norm.weight", Hidden, Always},
    {R::kMtpHead, P::kHead, Scope::kMtp, "shared_head.head.weight", Vocabulary, Always},
};

using Visit = std::function<void(const ExpectedWeight&)>;

void Describe(const Row& row, const ModelConfig& config, ExpectedWeight* weight) {
  weight->role = row.role;
  weight->part = row.part;
  weight->has_fallback = row.role == R::kMtpEmbedding || row.role == R::kMtpHead;
  const Shape shape = row.shape(config);
  weight->shape.assign({shape.rows});
  if (shape.cols > 0) weight->shape.push_back(shape.cols);
}

void VisitLayer(const ModelConfig& config, int layer_idx, const Visit& visit) {
  ExpectedWeight weight;
  weight.layer_idx = layer_idx;
  const std::string prefix = LayerPrefix(layer_idx);
  for (const Row& row : kRows) {
    if (row.scope != Scope::kLayer || !row.applies(config, layer_idx)) continue;
    Describe(row, config, &weight);
    weight.name.assign(prefix).append(row.name);
    visit(weight);
  }
  if (!config.is_moe_layer(layer_idx)) return;
  for (int expert = 0; expert < config.n_routed_experts; ++expert) {
    weight.expert_idx = expert;
    for (const Row& row : kRows) {
      if (row.scope != Scope::kExpert) continue;
      Describe(row, config, &weight);
      weight.name = fmt::format("{}mlp.experts.{}.{}", prefix, expert, row.name);
      visit(weight);
    }
  }
}

}  // namespace

std::string_view WeightPartName(WeightPart part) {
  constexpr std::string_view kNames[kNumWeightParts] = {"embedding", "head",           "norms",
                                                        "attention", "indexer",        "dense",
                                                        "router",    "shared_experts", "experts"};
  return kNames[static_cast<size_t>(part)];
}

void ForEachWeight(const ModelConfig& config, const Visit& visit) {
  ExpectedWeight weight;
  for (const Row& row : kRows) {
    if (row.scope != Scope::kModel || !row.applies(config, -1)) continue;
    Describe(row, config, &weight);
    weight.name = row.name;
    visit(weight);
  }
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) VisitLayer(config, layer, visit);
}

void ForEachMtpWeight(const ModelConfig& config, const Visit& visit) {
  ExpectedWeight weight;
  weight.layer_idx = config.num_hidden_layers;
  const std::string prefix = LayerPrefix(weight.layer_idx);
  for (const Row& row : kRows) {
    if (row.scope != Scope::kMtp) continue;
    Describe(row, config, &weight);
    weight.name.assign(prefix).append(row.name);
    visit(weight);
  }
  VisitLayer(config, weight.layer_idx, visit);
}

std::string LayerPrefix(int layer_idx) { return fmt::format("model.layers.{}.", layer_idx); }

std::string ScaleName(std::string_view weight_name) {
  return std::string(weight_name) + "_scale_inv";
}

std::vector<int64_t> ScaleShape(const std::vector<int64_t>& weight_shape) {
  return {CeilDiv<int64_t>(weight_shape[0], kF8BlockSize),
          CeilDiv<int64_t>(weight_shape[1], kF8BlockSize)};
}

}  // namespace hadal
