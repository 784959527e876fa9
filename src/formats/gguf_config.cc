#include "formats/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/quote.h"
#include "formats/gguf_keys.h"

namespace hadal {
namespace {

constexpr int64_t kMax = INT32_MAX;

class Reader {
 public:
  Reader(const GgufFile& file, std::span<const GgufTensor> tensors, const std::string& architecture,
         const std::string& what)
      : keys_(file, architecture + ".", what),
        tokenizer_(file, "tokenizer.ggml.", what),
        tensors_(tensors),
        is_v32_(architecture == "deepseek32") {}

  Result<GgufConfig> Run() {
    found_.config = Json::object();
    RETURN_IF_ERROR(ReadSizes());
    RETURN_IF_ERROR(ReadHeads());
    RETURN_IF_ERROR(ReadExperts());
    RETURN_IF_ERROR(ReadRope());
    RETURN_IF_ERROR(ReadIndexer());
    RETURN_IF_ERROR(ReadTokenIds());
    const bool is_v3 = is_v32_ || is_sigmoid_;
    Json& config = found_.config;
    config["model_type"] = is_v32_ ? "deepseek_v32" : is_v3 ? "deepseek_v3" : "deepseek_v2";
    config["tie_word_embeddings"] = FindTensor("output.weight") == nullptr;
    if (config["tie_word_embeddings"] == true) {
      Supply("output.weight: token_embd.weight is the head too");
    }
    return std::move(found_);
  }

 private:
  const GgufTensor* FindTensor(std::string_view name) const {
    const auto it = std::find_if(tensors_.begin(), tensors_.end(),
                                 [&](const GgufTensor& tensor) { return tensor.name == name; });
    return it == tensors_.end() ? nullptr : &*it;
  }
  // The first tensor whose name ends so, in whichever block.
  const GgufTensor* FindInBlocks(std::string_view suffix) const {
    const auto it = std::find_if(tensors_.begin(), tensors_.end(), [&](const GgufTensor& tensor) {
      return tensor.name.starts_with("blk.") && tensor.name.ends_with(suffix);
    });
    return it == tensors_.end() ? nullptr : &*it;
  }

  void Supply(std::string note) { found_.supplied.push_back(std::move(note)); }

  // An integer that must be there, under the config's name too.
  Status TakeInt(std::string_view key, const char* name, int64_t low = 1) {
    ASSIGN_OR_RETURN(const int64_t value, keys_.RequiredInt(key, low, kMax));
    found_.config[name] = value;
    return Status::Ok();
  }

  Status ReadSizes() {
    RETURN_IF_ERROR(TakeInt("embedding_length", "hidden_size"));
    RETURN_IF_ERROR(TakeInt("feed_forward_length", "intermediate_size"));
    RETURN_IF_ERROR(TakeInt("attention.head_count", "num_attention_heads"));
    RETURN_IF_ERROR(TakeInt("attention.kv_lora_rank", "kv_lora_rank"));
    RETURN_IF_ERROR(TakeInt("context_length", "max_position_embeddings"));
    ASSIGN_OR_RETURN(const int64_t blocks, keys_.RequiredInt("block_count", 1, kMax));
    ASSIGN_OR_RETURN(const auto nextn, keys_.Int("nextn_predict_layers", 0, blocks - 1));
    found_.config["num_hidden_layers"] = blocks - nextn.value_or(0);
    found_.config["num_nextn_predict_layers"] = nextn.value_or(0);
    ASSIGN_OR_RETURN(const auto vocab, keys_.Int("vocab_size", 1, kMax));
    if (vocab) {
      found_.config["vocab_size"] = *vocab;
    } else {
      const GgufTensor* table = FindTensor("token_embd.weight");
      if (table == nullptr || table->sizes.size() != 2) {
        return keys_.Fault("vocab_size", "an integer, or a matrix token_embd.weight", "neither");
      }
      found_.config["vocab_size"] = table->sizes[1];
      Supply(fmt::format("vocab_size: {}, the rows of token_embd.weight", table->sizes[1]));
    }
    ASSIGN_OR_RETURN(const auto q_rank, keys_.Int("attention.q_lora_rank", 0, kMax));
    q_lora_rank_ = q_rank.value_or(0);
    found_.config["q_lora_rank"] = q_lora_rank_ > 0 ? Json(q_lora_rank_) : Json(nullptr);
    ASSIGN_OR_RETURN(found_.config["rms_norm_eps"],
                     keys_.RequiredNumber("attention.layer_norm_rms_epsilon"));
    found_.config["hidden_act"] = "silu";
    return Status::Ok();
  }

  // key_length is the width of a head in files of the old form and the width of a cache row in
  // those of the split form, which have key_length_mla for the head.
  Status ReadHeads() {
    ASSIGN_OR_RETURN(const int64_t rope, keys_.RequiredInt("rope.dimension_count", 1, kMax));
    const bool is_split = keys_.Has("attention.key_length_mla");
    const char* key = is_split ? "attention.key_length_mla" : "attention.key_length";
    ASSIGN_OR_RETURN(int64_t qk_head_dim, keys_.RequiredInt(key, 1, kMax));
    ASSIGN_OR_RETURN(int64_t v_head_dim, keys_.RequiredInt(is_split ? "attention.value_length_mla"
                                                                    : "attention.value_length",
                                                           1, kMax));
    const auto heads = found_.config["num_attention_heads"].get<int64_t>();
    const auto rank = found_.config["kv_lora_rank"].get<int64_t>();
    if (!is_split && qk_head_dim == rank + rope && v_head_dim == rank) {
      const GgufTensor* q = FindInBlocks(q_lora_rank_ > 0 ? ".attn_q_b.weight" : ".attn_q.weight");
      const GgufTensor* out = FindInBlocks(".attn_output.weight");
      if (q == nullptr || q->sizes.size() != 2 || out == nullptr) {
        return keys_.Fault("attention.key_length_mla", "an integer", "nothing");
      }
      qk_head_dim = q->sizes[1] / heads;
      v_head_dim = out->sizes[0] / heads;
      Supply(
          fmt::format("attention.key_length_mla, value_length_mla: {}, {}, by the shapes of "
                      "the projections",
                      qk_head_dim, v_head_dim));
    }
    if (qk_head_dim <= rope) {
      return keys_.Fault(key, fmt::format("more than rope.dimension_count {}", rope),
                         std::to_string(qk_head_dim));
    }
    found_.config["qk_rope_head_dim"] = rope;
    found_.config["qk_nope_head_dim"] = qk_head_dim - rope;
    found_.config["v_head_dim"] = v_head_dim;
    return Status::Ok();
  }

  Status ReadExperts() {
    Json& config = found_.config;
    ASSIGN_OR_RETURN(const auto experts, keys_.Int("expert_count", 0, kMax));
    config["n_routed_experts"] = experts.value_or(0);
    if (experts.value_or(0) == 0) return Status::Ok();
    num_experts_ = *experts;
    RETURN_IF_ERROR(TakeInt("expert_used_count", "num_experts_per_tok"));
    RETURN_IF_ERROR(TakeInt("expert_feed_forward_length", "moe_intermediate_size"));
    ASSIGN_OR_RETURN(const auto shared, keys_.Int("expert_shared_count", 0, kMax));
    ASSIGN_OR_RETURN(const auto dense, keys_.Int("leading_dense_block_count", 0, kMax));
    config["n_shared_experts"] = shared.value_or(0);
    config["first_k_dense_replace"] = dense.value_or(0);
    config["moe_layer_freq"] = 1;
    RETURN_IF_ERROR(ReadGate());
    RETURN_IF_ERROR(ReadGroups());
    return ReadScale();
  }

  Status ReadGate() {
    ASSIGN_OR_RETURN(const auto gating, keys_.Int("expert_gating_func", 0, 15));
    const bool has_bias = FindInBlocks(".exp_probs_b.bias") != nullptr;
    if (gating && *gating != 0 && *gating != 1 && *gating != 2) {
      return keys_.Fault("expert_gating_func", "1 (softmax) or 2 (sigmoid)",
                         std::to_string(*gating));
    }
    is_sigmoid_ = gating.value_or(0) == 2;
    if (gating.value_or(0) == 0) {
      is_sigmoid_ = has_bias || is_v32_;
      Supply(fmt::format("expert_gating_func: {}", is_sigmoid_
                                                       ? "sigmoid, since there are selection biases"
                                                       : "softmax, as in all files of V2"));
    }
    found_.config["scoring_func"] = is_sigmoid_ ? "sigmoid" : "softmax";
    ASSIGN_OR_RETURN(const auto norm, keys_.Bool("expert_weights_norm"));
    found_.config["norm_topk_prob"] = norm.value_or(false);
    if (is_sigmoid_ && !norm) {
      found_.warnings.push_back(
          "expert_weights_norm is absent, so expert weights are not normalised; models of the V3 "
          "family were trained with it");
    }
    return Status::Ok();
  }

  // Groups of the published models, where a file is too old to tell. Specification, 1.2.
  Status ReadGroups() {
    ASSIGN_OR_RETURN(auto groups, keys_.Int("expert_group_count", 0, kMax));
    ASSIGN_OR_RETURN(auto used, keys_.Int("expert_group_used_count", 0, kMax));
    if (groups && *groups > 1 && !used) {
      return keys_.Fault("expert_group_used_count", "an integer, beside expert_group_count",
                         "nothing");
    }
    if (!groups) {
      groups = used = 1;
      if (is_sigmoid_ && num_experts_ == 256) {
        groups = 8;
        used = 4;
      } else if (!is_sigmoid_ && num_experts_ == 160) {
        groups = 8;
        used = 3;
      }
      Supply(fmt::format("expert_group_count, expert_group_used_count: {}, {}, for {} experts",
                         *groups, *used, num_experts_));
    }
    const bool has_groups = *groups > 1;
    found_.config["topk_method"] = is_sigmoid_  ? "noaux_tc"
                                   : has_groups ? "group_limited_greedy"
                                                : "greedy";
    found_.config["n_group"] = has_groups ? *groups : 1;
    found_.config["topk_group"] = has_groups ? *used : 1;
    return Status::Ok();
  }

  Status ReadScale() {
    ASSIGN_OR_RETURN(auto scale, keys_.Number("expert_weights_scale"));
    if (!scale || *scale == 0) {
      scale = is_sigmoid_ && num_experts_ == 256 ? 2.5 : num_experts_ == 160 ? 16.0 : 1.0;
      Supply(fmt::format("expert_weights_scale: {}, for {} experts", *scale, num_experts_));
    }
    found_.config["routed_scaling_factor"] = *scale;
    return Status::Ok();
  }

  // yarn_log_multiplier is 0.1 * mscale_all_dim. Cosines and sines are not scaled, so mscale is the
  // same.
  Status ReadRope() {
    ASSIGN_OR_RETURN(const auto base, keys_.Number("rope.freq_base"));
    found_.config["rope_theta"] = base.value_or(10000.0);
    ASSIGN_OR_RETURN(const auto type, keys_.Text("rope.scaling.type"));
    if (!type || *type == "none") return Status::Ok();
    if (*type != "yarn") {
      return Status::Unsupported(fmt::format(
          "{}: rope.scaling.type: expected yarn or none, found {}", keys_.what(), Quoted(*type)));
    }
    Json scaling = {{"type", "yarn"}};
    ASSIGN_OR_RETURN(scaling["factor"], keys_.RequiredNumber("rope.scaling.factor"));
    ASSIGN_OR_RETURN(scaling["original_max_position_embeddings"],
                     keys_.RequiredInt("rope.scaling.original_context_length", 1, kMax));
    ASSIGN_OR_RETURN(const auto fast, keys_.Number("rope.scaling.yarn_beta_fast"));
    ASSIGN_OR_RETURN(const auto slow, keys_.Number("rope.scaling.yarn_beta_slow"));
    if (!fast || !slow) Supply("rope.scaling.yarn_beta_fast, yarn_beta_slow: 32, 1");
    scaling["beta_fast"] = fast.value_or(32.0);
    scaling["beta_slow"] = slow.value_or(1.0);
    ASSIGN_OR_RETURN(auto log_multiplier, keys_.Number("rope.scaling.yarn_log_multiplier"));
    if (!log_multiplier) {
      // All published models of V2's shapes but V2.5 have 0.0707.
      log_multiplier = is_sigmoid_ ? 0.1 : 0.0707;
      Supply(fmt::format("rope.scaling.yarn_log_multiplier: {}, as the published models have it",
                         *log_multiplier));
    }
    // A whole number of millionths: 0.0707 / 0.1 is 0.707.
    const double mscale = std::round(*log_multiplier * 1e7) / 1e6;
    scaling["mscale"] = mscale;
    scaling["mscale_all_dim"] = mscale;
    found_.config["rope_scaling"] = std::move(scaling);
    return Status::Ok();
  }

  Status ReadIndexer() {
    if (!is_v32_ && !keys_.Has("attention.indexer.top_k")) return Status::Ok();
    RETURN_IF_ERROR(TakeInt("attention.indexer.head_count", "index_n_heads"));
    RETURN_IF_ERROR(TakeInt("attention.indexer.key_length", "index_head_dim"));
    return TakeInt("attention.indexer.top_k", "index_topk");
  }

  Status ReadTokenIds() {
    ASSIGN_OR_RETURN(const auto bos, tokenizer_.Int("bos_token_id", 0, kMax));
    if (bos) found_.config["bos_token_id"] = *bos;
    Json ends = Json::array();
    for (const char* key : {"eos_token_id", "eot_token_id"}) {
      ASSIGN_OR_RETURN(const auto id, tokenizer_.Int(key, 0, kMax));
      if (id && std::find(ends.begin(), ends.end(), Json(*id)) == ends.end()) ends.push_back(*id);
    }
    if (!ends.empty()) found_.config["eos_token_id"] = std::move(ends);
    return Status::Ok();
  }

  GgufKeys keys_, tokenizer_;
  std::span<const GgufTensor> tensors_;
  bool is_v32_ = false, is_sigmoid_ = false;
  int64_t q_lora_rank_ = 0, num_experts_ = 0;
  GgufConfig found_;
};

}  // namespace

Result<GgufConfig> ReadGgufConfig(const GgufFile& file, std::span<const GgufTensor> tensors,
                                  const std::string& what) {
  ASSIGN_OR_RETURN(const auto architecture, GgufKeys(file, "general.", what).Text("architecture"));
  if (architecture != "deepseek2" && architecture != "deepseek32") {
    return Status::Unsupported(
        fmt::format("{}: general.architecture: expected deepseek2 or deepseek32, found {}", what,
                    architecture ? Quoted(*architecture) : "nothing"));
  }
  return Reader(file, tensors, *architecture, what).Run();
}

}  // namespace hadal
