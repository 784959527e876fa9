// Configs of released models, and a tiny one, for tests to bend.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace hadal {

inline Json V2LiteConfig() {
  return Json::parse(R"({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
    "num_attention_heads": 16, "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "intermediate_size": 10944,
    "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
    "topk_method": "greedy", "scoring_func": "softmax", "norm_topk_prob": false,
    "routed_scaling_factor": 1.0, "vocab_size": 102400, "bos_token_id": 100000,
    "eos_token_id": 100001, "max_position_embeddings": 163840, "rope_theta": 10000,
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
                     "beta_fast": 32, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707}})");
}

// V2 with 236 B parameters.
inline Json V2Config() {
  Json config = V2LiteConfig();
  config.update(Json::parse(R"({"hidden_size": 5120, "num_hidden_layers": 60,
    "num_attention_heads": 128, "q_lora_rank": 1536, "intermediate_size": 12288,
    "moe_intermediate_size": 1536, "n_routed_experts": 160, "n_group": 8, "topk_group": 3,
    "topk_method": "group_limited_greedy", "routed_scaling_factor": 16.0})"));
  return config;
}

inline Json V3Config() {
  return Json::parse(R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "num_nextn_predict_layers": 1, "num_attention_heads": 128, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "n_group": 8,
    "topk_group": 4, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": true,
    "routed_scaling_factor": 2.5, "vocab_size": 129280, "bos_token_id": 0, "eos_token_id": 1,
    "max_position_embeddings": 163840, "rope_theta": 10000,
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                            "weight_block_size": [128, 128]},
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
                     "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}})");
}

inline Json V32Config() {
  Json config = V3Config();
  config["model_type"] = "deepseek_v32";
  config["index_n_heads"] = 64;
  config["index_head_dim"] = 128;
  config["index_topk"] = 2048;
  return config;
}

// All parts of V3.2 in sizes that fit a page: latent queries, a dense layer, four experts in two
// groups, a shared expert, an indexer, an MTP layer.
inline Json TinyV32Config() {
  return Json::parse(R"({"model_type": "deepseek_v32", "hidden_size": 32, "num_hidden_layers": 2,
    "num_nextn_predict_layers": 1, "num_attention_heads": 2, "q_lora_rank": 16, "kv_lora_rank": 24,
    "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "intermediate_size": 40,
    "moe_intermediate_size": 12, "n_routed_experts": 4, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
    "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": true,
    "routed_scaling_factor": 2.5, "vocab_size": 50, "max_position_embeddings": 128,
    "index_n_heads": 2, "index_head_dim": 8, "index_topk": 16})");
}

inline Json Without(Json config, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) config.erase(key);
  return config;
}

inline Json With(Json config, const std::string& key, Json value) {
  config[key] = std::move(value);
  return config;
}

}  // namespace hadal
