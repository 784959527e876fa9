// The numbers of a DeepSeek model: config.json, parsed and validated. Field names are those of the
// file. Behind Parse no code meets an optional key, a second spelling or a size that does not fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/status.h"
#include "formats/packed_scheme.h"

namespace hadal {

enum class ScoringFunc { kSoftmax, kSigmoid };
enum class TopkMethod { kGreedy, kGroupLimitedGreedy, kNoauxTc };

// rope_scaling / rope_parameters of type yarn; `factor` 1 means no scaling. Specification, 3.5
// and 3.6.
struct RopeScaling {
  bool is_yarn = false;
  double factor = 1.0;
  int original_max_position_embeddings = 0;
  double beta_fast = 32.0, beta_slow = 1.0;
  double mscale = 1.0, mscale_all_dim = 0.0;

  bool operator==(const RopeScaling&) const = default;
};

struct ModelConfig {
  std::string model_type;  // deepseek_v2, deepseek_v3, deepseek_v32
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int moe_intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_nextn_predict_layers = 0;
  int num_attention_heads = 0;
  int q_lora_rank = 0;  // 0: none, q_proj instead
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;

  int n_routed_experts = 0;  // 0: all layers are dense
  int n_shared_experts = 0;
  int num_experts_per_tok = 0;
  int n_group = 1, topk_group = 1;
  TopkMethod topk_method = TopkMethod::kGreedy;
  ScoringFunc scoring_func = ScoringFunc::kSoftmax;
  bool norm_topk_prob = false;
  double routed_scaling_factor = 1.0;
  int first_k_dense_replace = 0, moe_layer_freq = 1;

  int index_n_heads = 0, index_head_dim = 0, index_topk = 0;  // 0: no indexer
  bool is_indexer_rope_interleaved = false;  // false for DeepSeek; true in related models

  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  int max_position_embeddings = 0;
  bool tie_word_embeddings = false;
  PackedScheme packed_scheme;        // of an export whose matrices are packed
  bool has_grouped_weights = false;  // U8 matrices are tiles of a grouped format (block_layout.h)
  int bos_token_id = -1;             // -1: the file names none
  std::vector<int> eos_token_ids;    // of config.json; generation_config.json may add more

  // Reads config.json (both spellings of the rope keys; family defaults where a key is absent and
  // the family has one) and validates it. `what` names the file in errors. kCorrupt: a value that
  // is missing, of the wrong type or out of range, with the key; kUnsupported: another architecture
  // or rope type.
  static Result<ModelConfig> Parse(const Json& config, const std::string& what);

  // Every assumption of the engine, with the numbers that break it. Parse calls it.
  Status Validate(const std::string& what) const;

  bool has_experts() const { return n_routed_experts > 0; }
  bool has_indexer() const { return index_topk > 0; }
  bool is_moe_layer(int layer_idx) const {
    return has_experts() && layer_idx >= first_k_dense_replace && layer_idx % moe_layer_freq == 0;
  }
  int qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  // Width of a cached row: the normalised latent, then the rotated rope key. Specification, 3.8.
  int latent_dim() const { return kv_lora_rank + qk_rope_head_dim; }
  // Factor of q . k, YaRN's part included. Specification, 3.6.
  double softmax_scale() const;
  // Layers in the file's numbering, MTP included.
  int num_stored_layers() const { return num_hidden_layers + num_nextn_predict_layers; }
};

}  // namespace hadal
