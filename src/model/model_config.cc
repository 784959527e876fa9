#include "model/model_config.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/json.h"
#include "base/quote.h"
#include "model/rope_config.h"

namespace hadal {
namespace {

// Bounds of single values: far above any model, and small enough that products of two fit into an
// int64_t and of three stay clear of it.
constexpr int64_t kMaxSize = 1 << 24;
constexpr int64_t kMaxLayers = 1 << 12;
constexpr int64_t kMaxExperts = 1 << 16;

// Reads one config.json; remembers the first fault, so that the list of keys reads as a list.
class Reader {
 public:
  Reader(const Json& config, const std::string& what) : config_(config), what_(what) {}

  void Size(std::string_view key, int* value, int64_t low = 1, int64_t high = kMaxSize) {
    Take(ReadInt(config_, key, low, high, what_), value);
  }
  void SizeOr(std::string_view key, int64_t absent, int* value, int64_t low = 1,
              int64_t high = kMaxSize) {
    Take(ReadIntOr(config_, key, low, high, absent, what_), value);
  }
  void NumberOr(std::string_view key, double absent, double* value) {
    Take(ReadNumberOr(config_, key, absent, what_), value);
  }
  void BoolOr(std::string_view key, bool absent, bool* value) {
    Take(ReadBoolOr(config_, key, absent, what_), value);
  }
  void StringOr(std::string_view key, std::string_view absent, std::string* value) {
    Take(ReadStringOr(config_, key, absent, what_), value);
  }
  bool Has(std::string_view key) const { return HasValue(config_, key); }

  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Json& config() const { return config_; }
  const std::string& what() const { return what_; }
  const Status& status() const { return status_; }

 private:
  template <class From, class To>
  void Take(Result<From> result, To* value) {
    if (!result.ok()) return Fail(result.status());
    *value = static_cast<To>(std::move(result).value());
  }

  const Json& config_;
  const std::string& what_;
  Status status_;
};

Status Unsupported(const Reader& reader, std::string_view key, std::string_view expected,
                   std::string_view found) {
  return Status::Unsupported(
      fmt::format("{}: {}: expected {}, found {}", reader.what(), key, expected, found));
}

// deepseek_v2, deepseek_v3 or deepseek_v32. Specification, 1.2.
void ReadModelType(Reader* reader, ModelConfig* config) {
  std::string type, architecture;
  reader->StringOr("model_type", "", &type);
  if (HasValue(reader->config(), "architectures")) {
    const Json& list = reader->config()["architectures"];
    if (list.is_array() && !list.empty() && list[0].is_string()) architecture = list[0];
  }
  // The very first upload of V2 called itself "deepseek"; the older models of that name have no
  // latent attention.
  if (type == "deepseek" && reader->Has("kv_lora_rank")) type = "deepseek_v2";
  if (type.empty() && architecture == "DeepseekV2ForCausalLM") type = "deepseek_v2";
  if (type.empty() && architecture == "DeepseekV3ForCausalLM") type = "deepseek_v3";
  if (type.empty() && architecture == "DeepseekV32ForCausalLM") type = "deepseek_v32";
  if (type != "deepseek_v2" && type != "deepseek_v3" && type != "deepseek_v32") {
    return reader->Fail(Unsupported(*reader, "model_type",
                                    "deepseek_v2, deepseek_v3 or deepseek_v32",
                                    type.empty() ? "nothing" : Quoted(type)));
  }
  config->model_type = type;
}

void ReadSizes(Reader* reader, ModelConfig* config) {
  reader->Size("vocab_size", &config->vocab_size);
  reader->Size("hidden_size", &config->hidden_size);
  reader->Size("intermediate_size", &config->intermediate_size);
  reader->Size("num_hidden_layers", &config->num_hidden_layers, 1, kMaxLayers);
  reader->SizeOr("num_nextn_predict_layers", 0, &config->num_nextn_predict_layers, 0, kMaxLayers);
  reader->Size("num_attention_heads", &config->num_attention_heads);
  reader->SizeOr("q_lora_rank", 0, &config->q_lora_rank, 0);
  reader->Size("kv_lora_rank", &config->kv_lora_rank);
  reader->Size("qk_nope_head_dim", &config->qk_nope_head_dim);
  reader->Size("qk_rope_head_dim", &config->qk_rope_head_dim);
  reader->Size("v_head_dim", &config->v_head_dim);
  // Specification, 1.1: the same for every release.
  reader->SizeOr("max_position_embeddings", 163840, &config->max_position_embeddings);
  reader->NumberOr("rms_norm_eps", 1e-6, &config->rms_norm_eps);
  reader->BoolOr("tie_word_embeddings", false, &config->tie_word_embeddings);
}

// What the engine computes in one way only.
void ReadFixedChoices(Reader* reader) {
  std::string activation;
  bool has_bias = false, is_interleaved = true;
  reader->StringOr("hidden_act", "silu", &activation);
  reader->BoolOr("attention_bias", false, &has_bias);
  reader->BoolOr("rope_interleave", true, &is_interleaved);
  if (activation != "silu") {
    reader->Fail(Unsupported(*reader, "hidden_act", "silu", Quoted(activation)));
  }
  if (has_bias) reader->Fail(Unsupported(*reader, "attention_bias", "false", "true"));
  if (!is_interleaved) reader->Fail(Unsupported(*reader, "rope_interleave", "true", "false"));
}

// Defaults of the families whose gate is known: V3, and of V2 the Lite form (no q_lora_rank) and
// the one with 160 experts. Specification, 1.2 and 8.2.
struct GateDefaults {
  bool is_known = false;  // false: a V2 that could be anything; its config must speak for itself
  ScoringFunc scoring_func = ScoringFunc::kSoftmax;
  TopkMethod topk_method = TopkMethod::kGreedy;
  bool norm_topk_prob = false;
  double routed_scaling_factor = 1.0;
  int n_group = 0, topk_group = 0;  // 0: unknown
};

GateDefaults FindGateDefaults(const ModelConfig& config) {
  if (config.model_type != "deepseek_v2") {
    const bool has_published_groups = config.n_routed_experts == 256;
    return {.is_known = true,
            .scoring_func = ScoringFunc::kSigmoid,
            .topk_method = TopkMethod::kNoauxTc,
            .norm_topk_prob = true,
            .routed_scaling_factor = 2.5,
            .n_group = has_published_groups ? 8 : 0,
            .topk_group = has_published_groups ? 4 : 0};
  }
  if (config.q_lora_rank == 0) return {.is_known = true, .n_group = 1, .topk_group = 1};
  if (config.n_routed_experts == 160) {
    return {.is_known = true,
            .topk_method = TopkMethod::kGroupLimitedGreedy,
            .routed_scaling_factor = 16.0,
            .n_group = 8,
            .topk_group = 3};
  }
  return {};
}

// A word of a short list; `absent` where the key is missing.
template <class Enum, size_t kCount>
void ReadWord(Reader* reader, std::string_view key,
              const std::array<std::pair<std::string_view, Enum>, kCount>& words, Enum absent,
              Enum* value) {
  *value = absent;
  if (!reader->Has(key)) return;
  std::string word;
  reader->StringOr(key, "", &word);
  std::string expected;
  for (const auto& [name, meaning] : words) {
    if (word == name) {
      *value = meaning;
      return;
    }
    expected += fmt::format("{}{}", expected.empty() ? "" : " or ", name);
  }
  reader->Fail(Unsupported(*reader, key, expected, Quoted(word)));
}

void RequireGateKey(Reader* reader, std::string_view key, bool has_default) {
  if (has_default || reader->Has(key)) return;
  reader->Fail(Status::Corrupt(fmt::format(
      "{}: {}: expected a value, since no family default fits this model, found nothing",
      reader->what(), key)));
}

void ReadGate(Reader* reader, ModelConfig* config) {
  constexpr std::array<std::pair<std::string_view, ScoringFunc>, 2> kScoringFuncs = {
      {{"softmax", ScoringFunc::kSoftmax}, {"sigmoid", ScoringFunc::kSigmoid}}};
  constexpr std::array<std::pair<std::string_view, TopkMethod>, 3> kTopkMethods = {
      {{"greedy", TopkMethod::kGreedy},
       {"group_limited_greedy", TopkMethod::kGroupLimitedGreedy},
       {"noaux_tc", TopkMethod::kNoauxTc}}};
  const GateDefaults defaults = FindGateDefaults(*config);
  RequireGateKey(reader, "topk_method", defaults.is_known);
  RequireGateKey(reader, "routed_scaling_factor", defaults.is_known);
  ReadWord(reader, "scoring_func", kScoringFuncs, defaults.scoring_func, &config->scoring_func);
  ReadWord(reader, "topk_method", kTopkMethods, defaults.topk_method, &config->topk_method);
  reader->BoolOr("norm_topk_prob", defaults.norm_topk_prob, &config->norm_topk_prob);
  reader->NumberOr("routed_scaling_factor", defaults.routed_scaling_factor,
                   &config->routed_scaling_factor);
  if (config->topk_method == TopkMethod::kGreedy) return;  // knows no groups
  RequireGateKey(reader, "n_group", defaults.n_group > 0);
  RequireGateKey(reader, "topk_group", defaults.topk_group > 0);
  reader->SizeOr("n_group", defaults.n_group, &config->n_group);
  reader->SizeOr("topk_group", defaults.topk_group, &config->topk_group);
}

void ReadExperts(Reader* reader, ModelConfig* config) {
  // Null or 0 makes every layer dense, as in the reference code of V2.
  if (reader->config().contains("n_routed_experts")) {
    reader->SizeOr("n_routed_experts", 0, &config->n_routed_experts, 0, kMaxExperts);
  } else {
    reader->Size("n_routed_experts", &config->n_routed_experts);
  }
  if (!reader->status().ok() || !config->has_experts()) return;
  if (reader->config().contains("n_shared_experts")) {
    reader->SizeOr("n_shared_experts", 0, &config->n_shared_experts, 0, kMaxExperts);
  } else {
    reader->Size("n_shared_experts", &config->n_shared_experts);
  }
  reader->Size("moe_intermediate_size", &config->moe_intermediate_size);
  reader->Size("num_experts_per_tok", &config->num_experts_per_tok, 1, kMaxExperts);
  reader->Size("first_k_dense_replace", &config->first_k_dense_replace, 0, kMaxLayers);
  reader->SizeOr("moe_layer_freq", 1, &config->moe_layer_freq, 1, kMaxLayers);
  ReadGate(reader, config);
}

// Sparse attention of V3.2: all of its keys or none.
void ReadIndexer(Reader* reader, ModelConfig* config) {
  const bool has_any =
      reader->Has("index_topk") || reader->Has("index_n_heads") || reader->Has("index_head_dim");
  if (!has_any && config->model_type != "deepseek_v32") return;
  reader->Size("index_n_heads", &config->index_n_heads);
  reader->Size("index_head_dim", &config->index_head_dim);
  reader->Size("index_topk", &config->index_topk, 1, INT32_MAX);
  reader->BoolOr("indexer_rope_interleave", false, &config->is_indexer_rope_interleaved);
}

void ReadTokenIds(Reader* reader, ModelConfig* config) {
  reader->SizeOr("bos_token_id", -1, &config->bos_token_id, 0, INT32_MAX);
  if (!reader->Has("eos_token_id")) return;
  const Json& ids = reader->config()["eos_token_id"];
  const Json list = ids.is_array() ? ids : Json::array({ids});
  for (const Json& id : list) {
    int value = 0;
    const Json single = {{"eos_token_id", id}};
    Reader item(single, reader->what());
    item.Size("eos_token_id", &value, 0, INT32_MAX);
    reader->Fail(item.status());
    config->eos_token_ids.push_back(value);
  }
}

// Whether a weight is FP8 is decided by its dtype; the key only tells what we cannot read, and that
// U8 matrices are tiles. Specification, 1.3.
void ReadQuantization(Reader* reader, ModelConfig* config) {
  if (!reader->Has("quantization_config")) return;
  const Json& quantization = reader->config()["quantization_config"];
  const std::string what = reader->what() + ": quantization_config";
  Reader inner(quantization, what);
  std::string method, format;
  inner.StringOr("quant_method", "", &method);
  inner.StringOr("fmt", "e4m3", &format);
  if (inner.status().ok() && method == "hadal") {
    int version = 0;
    inner.Size("version", &version, 1, INT32_MAX);
    if (inner.status().ok() && version != 1) {
      inner.Fail(Unsupported(inner, "version", "1", std::to_string(version)));
    }
    config->has_grouped_weights = true;
    reader->Fail(inner.status());
    return;
  }
  if (inner.status().ok()) {
    Result<std::optional<PackedScheme>> scheme = ParsePackedScheme(quantization, what);
    if (!scheme.ok()) return reader->Fail(scheme.status());
    if (*scheme) {
      config->packed_scheme = **std::move(scheme);
      return;
    }
  }
  if (inner.status().ok() && method != "fp8") {
    inner.Fail(Unsupported(inner, "quant_method", "fp8, hadal, compressed-tensors, gptq or awq",
                           Quoted(method)));
  }
  if (inner.status().ok() && format != "e4m3") {
    inner.Fail(Unsupported(inner, "fmt", "e4m3", Quoted(format)));
  }
  if (inner.Has("weight_block_size") &&
      quantization["weight_block_size"] != Json::array({128, 128})) {
    inner.Fail(Unsupported(inner, "weight_block_size", "[128, 128]",
                           Quoted(DumpJson(quantization["weight_block_size"]), 60)));
  }
  reader->Fail(inner.status());
}

}  // namespace

Result<ModelConfig> ModelConfig::Parse(const Json& config, const std::string& what) {
  if (!config.is_object()) {
    return Status::Corrupt(fmt::format("{}: expected a JSON object, found {}", what,
                                       config.is_null() ? "nothing" : config.type_name()));
  }
  ModelConfig parsed;
  Reader reader(config, what);
  ReadModelType(&reader, &parsed);
  RETURN_IF_ERROR(reader.status());
  ReadQuantization(&reader, &parsed);
  ReadFixedChoices(&reader);
  ReadSizes(&reader, &parsed);
  ReadExperts(&reader, &parsed);
  ReadIndexer(&reader, &parsed);
  ReadTokenIds(&reader, &parsed);
  RETURN_IF_ERROR(reader.status());
  ASSIGN_OR_RETURN(const RopeConfig rope, ReadRopeConfig(config, what));
  parsed.rope_theta = rope.theta;
  parsed.rope_scaling = rope.scaling;
  RETURN_IF_ERROR(parsed.Validate(what));
  return parsed;
}

// softmax scale = qk_head_dim^(-1/2) * m^2,  m = 0.1 * mscale_all_dim * ln(factor) + 1.
double ModelConfig::softmax_scale() const {
  const double plain = 1.0 / std::sqrt(static_cast<double>(qk_head_dim()));
  if (!rope_scaling.is_yarn || rope_scaling.factor <= 1.0) return plain;
  const double m = 0.1 * rope_scaling.mscale_all_dim * std::log(rope_scaling.factor) + 1.0;
  return plain * m * m;  // m is 1 for mscale_all_dim 0
}

}  // namespace hadal
