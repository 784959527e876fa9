#include "convert/model_shapes.h"

#include <fmt/format.h>

#include "base/json.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

constexpr int64_t kMaxConfigBytes = 1 << 20;

// Specification, 1.1: the same in every release.
Json Common() {
  return {{"hidden_act", "silu"}, {"attention_bias", false}, {"tie_word_embeddings", false},
          {"rope_theta", 10000},  {"rms_norm_eps", 1e-6},    {"max_position_embeddings", 163840},
          {"kv_lora_rank", 512},  {"qk_nope_head_dim", 128}, {"qk_rope_head_dim", 64},
          {"v_head_dim", 128},    {"moe_layer_freq", 1},     {"torch_dtype", "bfloat16"},
          {"use_cache", true}};
}

Json Yarn(double mscale) {
  return {{"type", "yarn"},          {"factor", 40},   {"original_max_position_embeddings", 4096},
          {"beta_fast", 32},         {"beta_slow", 1}, {"mscale", mscale},
          {"mscale_all_dim", mscale}};
}

// Specification, 1.2, column by column.
Json V2Lite() {
  Json config = Common();
  config.update({{"architectures", {"DeepseekV2ForCausalLM"}},
                 {"model_type", "deepseek_v2"},
                 {"hidden_size", 2048},
                 {"num_hidden_layers", 27},
                 {"num_attention_heads", 16},
                 {"num_key_value_heads", 16},
                 {"q_lora_rank", nullptr},
                 {"intermediate_size", 10944},
                 {"moe_intermediate_size", 1408},
                 {"n_routed_experts", 64},
                 {"n_shared_experts", 2},
                 {"num_experts_per_tok", 6},
                 {"first_k_dense_replace", 1},
                 {"n_group", 1},
                 {"topk_group", 1},
                 {"topk_method", "greedy"},
                 {"scoring_func", "softmax"},
                 {"norm_topk_prob", false},
                 {"routed_scaling_factor", 1.0},
                 {"rope_scaling", Yarn(0.707)},
                 {"vocab_size", 102400},
                 {"bos_token_id", 100000},
                 {"eos_token_id", 100001}});
  return config;
}

Json V2() {
  Json config = V2Lite();
  config.update({{"hidden_size", 5120},
                 {"num_hidden_layers", 60},
                 {"num_attention_heads", 128},
                 {"num_key_value_heads", 128},
                 {"q_lora_rank", 1536},
                 {"intermediate_size", 12288},
                 {"moe_intermediate_size", 1536},
                 {"n_routed_experts", 160},
                 {"n_group", 8},
                 {"topk_group", 3},
                 {"topk_method", "group_limited_greedy"},
                 {"routed_scaling_factor", 16.0}});
  return config;
}

Json V3() {
  Json config = V2();
  config.update({{"architectures", {"DeepseekV3ForCausalLM"}},
                 {"model_type", "deepseek_v3"},
                 {"hidden_size", 7168},
                 {"num_hidden_layers", 61},
                 {"intermediate_size", 18432},
                 {"moe_intermediate_size", 2048},
                 {"n_routed_experts", 256},
                 {"n_shared_experts", 1},
                 {"num_experts_per_tok", 8},
                 {"first_k_dense_replace", 3},
                 {"n_group", 8},
                 {"topk_group", 4},
                 {"topk_method", "noaux_tc"},
                 {"scoring_func", "sigmoid"},
                 {"norm_topk_prob", true},
                 {"routed_scaling_factor", 2.5},
                 {"rope_scaling", Yarn(1.0)},
                 {"vocab_size", 129280},
                 {"bos_token_id", 0},
                 {"eos_token_id", 1},
                 {"num_nextn_predict_layers", 1}});
  return config;
}

Json V32() {
  Json config = V3();
  config.update({{"architectures", {"DeepseekV32ForCausalLM"}},
                 {"model_type", "deepseek_v32"},
                 {"index_n_heads", 64},
                 {"index_head_dim", 128},
                 {"index_topk", 2048}});
  return config;
}

struct NamedShape {
  const char* name;
  Json (*config)();
};
constexpr NamedShape kShapes[] = {{"v2-lite", V2Lite}, {"v2", V2}, {"v3", V3}, {"v3.2", V32}};

}  // namespace

const std::vector<std::string>& ModelShapeNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const NamedShape& shape : kShapes) list.emplace_back(shape.name);
    return list;
  }();
  return names;
}

Result<Json> ReadModelShape(const std::string& name_or_path) {
  for (const NamedShape& shape : kShapes) {
    if (name_or_path == shape.name) return shape.config();
  }
  const Result<std::string> text = ReadFile(name_or_path, kMaxConfigBytes);
  if (text.status().code() == StatusCode::kNotFound) {
    return Status::NotFound(fmt::format("shape: expected {} or a config.json, found '{}'",
                                        fmt::join(ModelShapeNames(), ", "), name_or_path));
  }
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(Json config, ParseJson(text.value(), name_or_path));
  if (!config.is_object()) {
    return Status::Corrupt(
        fmt::format("{}: expected a JSON object, found {}", name_or_path, config.type_name()));
  }
  return config;
}

}  // namespace hadal
