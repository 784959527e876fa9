#include "tests/support/random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "formats/safetensors_writer.h"
#include "model/model_config.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

// What a tensor is for; decides how releases store it.
enum class Role {
  kProjection,  // FP8 in FP8 releases
  kPlain,       // BF16 there: embedding, head, norms, router, eh_proj
  kFloat,       // F32 in the V3 family whatever the rest is: selection bias, the indexer's norm
};

struct RandomTensor {
  std::string name;
  std::vector<int64_t> shape;
  Role role = Role::kProjection;
  double center = 0.0;
  double spread = 0.0;  // standard deviation
};

// All tensors of a checkpoint, in the order of the published tables (specification, 2.1 to 2.7).
class TensorList {
 public:
  explicit TensorList(const ModelConfig& config) : c_(config) {}

  std::vector<RandomTensor> Build(bool has_mtp_copies) {
    AddPlain("model.embed_tokens.weight", c_.vocab_size, c_.hidden_size, 1.0);
    for (int layer = 0; layer < c_.num_hidden_layers; ++layer) AddLayer(layer);
    if (c_.num_nextn_predict_layers > 0) AddMtp(has_mtp_copies);
    AddGain("model.norm.weight", c_.hidden_size);
    if (!c_.tie_word_embeddings) AddHead("lm_head.weight");
    return std::move(tensors_);
  }

 private:
  // A matrix whose outputs are of the order of `gain` for inputs of the order of 1.
  void AddMatrix(const std::string& name, int rows, int cols, double gain = 1.0) {
    Add(name, {rows, cols}, Role::kProjection, 0.0, gain / std::sqrt(cols));
  }
  void AddPlain(const std::string& name, int rows, int cols, double spread) {
    Add(name, {rows, cols}, Role::kPlain, 0.0, spread);
  }
  void AddGain(const std::string& name, int size) { Add(name, {size}, Role::kPlain, 1.0, 0.2); }
  void AddHead(const std::string& name) {
    AddPlain(name, c_.vocab_size, c_.hidden_size, 1.0 / std::sqrt(c_.hidden_size));
  }
  void Add(const std::string& name, std::vector<int64_t> shape, Role role, double center,
           double spread) {
    tensors_.push_back({name, std::move(shape), role, center, spread});
  }

  void AddLayer(int layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    AddGain(prefix + "input_layernorm.weight", c_.hidden_size);
    AddAttention(prefix + "self_attn.");
    if (c_.has_indexer()) AddIndexer(prefix + "self_attn.indexer.");
    AddGain(prefix + "post_attention_layernorm.weight", c_.hidden_size);
    if (c_.is_moe_layer(layer)) {
      AddMixture(prefix + "mlp.");
    } else {
      AddSwiGlu(prefix + "mlp.", c_.intermediate_size);
    }
  }

  void AddAttention(const std::string& prefix) {
    const int heads = c_.num_attention_heads;
    const int q_rows = heads * (c_.qk_nope_head_dim + c_.qk_rope_head_dim);
    constexpr double kSharp = 2.0;  // so that attention prefers some positions clearly
    if (c_.q_lora_rank == 0) {
      AddMatrix(prefix + "q_proj.weight", q_rows, c_.hidden_size, kSharp);
    } else {
      AddMatrix(prefix + "q_a_proj.weight", c_.q_lora_rank, c_.hidden_size);
      AddGain(prefix + "q_a_layernorm.weight", c_.q_lora_rank);
      AddMatrix(prefix + "q_b_proj.weight", q_rows, c_.q_lora_rank, kSharp);
    }
    AddMatrix(prefix + "kv_a_proj_with_mqa.weight", c_.kv_lora_rank + c_.qk_rope_head_dim,
              c_.hidden_size);
    AddGain(prefix + "kv_a_layernorm.weight", c_.kv_lora_rank);
    AddMatrix(prefix + "kv_b_proj.weight", heads * (c_.qk_nope_head_dim + c_.v_head_dim),
              c_.kv_lora_rank);
    AddMatrix(prefix + "o_proj.weight", c_.hidden_size, heads * c_.v_head_dim, 1.5);
  }

  void AddIndexer(const std::string& prefix) {
    AddMatrix(prefix + "wq_b.weight", c_.index_n_heads * c_.index_head_dim, c_.q_lora_rank);
    AddMatrix(prefix + "wk.weight", c_.index_head_dim, c_.hidden_size);
    Add(prefix + "k_norm.weight", {c_.index_head_dim}, Role::kFloat, 1.0, 0.2);
    Add(prefix + "k_norm.bias", {c_.index_head_dim}, Role::kFloat, 0.0, 0.2);
    AddPlain(prefix + "weights_proj.weight", c_.index_n_heads, c_.hidden_size,
             1.0 / std::sqrt(c_.hidden_size));
  }

  void AddSwiGlu(const std::string& prefix, int width) {
    AddMatrix(prefix + "gate_proj.weight", width, c_.hidden_size);
    AddMatrix(prefix + "up_proj.weight", width, c_.hidden_size);
    AddMatrix(prefix + "down_proj.weight", c_.hidden_size, width, 2.0);
  }

  void AddMixture(const std::string& prefix) {
    AddPlain(prefix + "gate.weight", c_.n_routed_experts, c_.hidden_size,
             1.5 / std::sqrt(c_.hidden_size));
    if (c_.topk_method == TopkMethod::kNoauxTc) {
      // Positive and negative, and large enough to decide.
      Add(prefix + "gate.e_score_correction_bias", {c_.n_routed_experts}, Role::kFloat, 0.0, 0.3);
    }
    for (int e = 0; e < c_.n_routed_experts; ++e) {
      AddSwiGlu(fmt::format("{}experts.{}.", prefix, e), c_.moe_intermediate_size);
    }
    if (c_.n_shared_experts > 0) {
      AddSwiGlu(prefix + "shared_experts.", c_.n_shared_experts * c_.moe_intermediate_size);
    }
  }

  void AddMtp(bool has_copies) {
    const std::string prefix = fmt::format("model.layers.{}.", c_.num_hidden_layers);
    AddGain(prefix + "enorm.weight", c_.hidden_size);
    AddGain(prefix + "hnorm.weight", c_.hidden_size);
    AddPlain(prefix + "eh_proj.weight", c_.hidden_size, 2 * c_.hidden_size,
             1.0 / std::sqrt(2 * c_.hidden_size));
    AddLayer(c_.num_hidden_layers);
    AddGain(prefix + "shared_head.norm.weight", c_.hidden_size);
    if (!has_copies) return;
    // Unlike in a release their values differ from the main ones, so that a test sees which is
    // used.
    AddPlain(prefix + "embed_tokens.weight", c_.vocab_size, c_.hidden_size, 1.0);
    AddHead(prefix + "shared_head.head.weight");
  }

  const ModelConfig& c_;
  std::vector<RandomTensor> tensors_;
};

// Uniform with the mean and standard deviation of `tensor`; a function of seed, name and index.
std::vector<float> RandomValues(const RandomTensor& tensor, uint64_t seed) {
  uint64_t stream = Mix64(seed);
  for (const char letter : tensor.name) stream = Mix64(stream ^ static_cast<uint8_t>(letter));
  size_t size = 1;
  for (const int64_t n : tensor.shape) size *= static_cast<size_t>(n);
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) {
    const double unit = static_cast<double>(Mix64(stream + i) >> 11) * 0x1.0p-53;
    values[i] = static_cast<float>(tensor.center + tensor.spread * std::sqrt(12.0) * (unit - 0.5));
  }
  return values;
}

// A tensor as it goes into a file.
struct StoredTensor {
  SafetensorsSpec spec;
  std::vector<std::byte> bytes;
  int shard = 0;
};

template <class T>
void Append(T value, std::vector<std::byte>* bytes) {
  const size_t old = bytes->size();
  bytes->resize(old + sizeof(T));
  std::memcpy(bytes->data() + old, &value, sizeof(T));
}

StoredTensor Encode(const RandomTensor& tensor, DType dtype, std::span<const float> values) {
  StoredTensor stored{{tensor.name, dtype, tensor.shape}, {}, 0};
  for (const float value : values) {
    if (dtype == DType::kF32) Append(value, &stored.bytes);
    if (dtype == DType::kBF16) Append(FloatToBf16(value), &stored.bytes);
    if (dtype == DType::kF16) Append(FloatToFp16(value), &stored.bytes);
  }
  return stored;
}

// Codes and scales of one matrix: scale = largest / 448 of each 128 x 128 block, or the next power
// of two above it. Specification, 7.3 and 7.4.
void EncodeFp8(const RandomTensor& tensor, bool powers_of_two, std::span<const float> values,
               StoredTensor* codes, StoredTensor* scales) {
  const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
  const int64_t scale_rows = (rows + 127) / 128, scale_cols = (cols + 127) / 128;
  *codes = {{tensor.name, DType::kF8E4M3, tensor.shape}, {}, 0};
  *scales = {{tensor.name + "_scale_inv", DType::kF32, {scale_rows, scale_cols}}, {}, 0};
  std::vector<float> scale(scale_rows * scale_cols, 0.0f);
  for (int64_t i = 0; i < rows * cols; ++i) {
    float& s = scale[i / cols / 128 * scale_cols + i % cols / 128];
    s = std::max(s, std::abs(values[i]));
  }
  for (float& s : scale) {
    s = s == 0 ? 1.0f : s / 448.0f;
    if (powers_of_two) s = std::exp2(std::ceil(std::log2(s)));
    Append(s, &scales->bytes);
  }
  for (int64_t i = 0; i < rows * cols; ++i) {
    const float s = scale[i / cols / 128 * scale_cols + i % cols / 128];
    Append(FloatToE4m3(values[i] / s), &codes->bytes);
  }
}

// Neighbouring 128 x 128 blocks differ by factors, so that a scale of another block shows.
void SpreadBlocks(const RandomTensor& tensor, std::span<float> values) {
  const int64_t cols = tensor.shape[1];
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    constexpr float kFactors[] = {1.0f, 0.4f, 1.7f, 0.7f, 1.3f};
    values[i] *= kFactors[(i / cols / 128 * 2 + i % cols / 128) % 5];
  }
}

bool IsFp8(WeightStorage storage) {
  return storage == WeightStorage::kFp8 || storage == WeightStorage::kFp8PowersOfTwo;
}

DType PlainType(WeightStorage storage) {
  if (storage == WeightStorage::kF32) return DType::kF32;
  return storage == WeightStorage::kF16 ? DType::kF16 : DType::kBF16;
}

void Store(const RandomTensor& tensor, const RandomModelOptions& options,
           std::vector<StoredTensor>* stored) {
  std::vector<float> values = RandomValues(tensor, options.seed);
  const bool is_fp8 = IsFp8(options.storage) && tensor.role == Role::kProjection;
  if (is_fp8) SpreadBlocks(tensor, values);
  if (options.edit) options.edit(tensor.name, values);
  const int shard = static_cast<int>(stored->size()) % options.num_shards;
  const auto keep = [&](StoredTensor one, int its_shard) {
    one.shard = its_shard % options.num_shards;
    if (!options.left_out.contains(one.spec.name)) stored->push_back(std::move(one));
  };
  if (!is_fp8) {
    const DType dtype = tensor.role == Role::kFloat ? DType::kF32 : PlainType(options.storage);
    return keep(Encode(tensor, dtype, values), shard);
  }
  StoredTensor codes, scales;
  EncodeFp8(tensor, options.storage == WeightStorage::kFp8PowersOfTwo, values, &codes, &scales);
  keep(std::move(codes), shard);
  keep(std::move(scales), shard + 1);
}

// One more space behind the header moves the data to an odd offset. Specification, 2.10.
Status Misalign(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  uint64_t size = 0;
  std::memcpy(&size, text.data(), sizeof(size));
  text.insert(8 + size, " ");
  ++size;
  std::memcpy(text.data(), &size, sizeof(size));
  std::ofstream(path, std::ios::binary) << text;
  return in.good() || in.eof() ? Status::Ok() : Status::Io(path);
}

Status WriteFiles(const std::vector<StoredTensor>& stored, const RandomModelOptions& options,
                  const std::string& folder) {
  Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
  for (int shard = 0; shard < options.num_shards; ++shard) {
    const std::string name =
        options.num_shards == 1
            ? "model.safetensors"
            : fmt::format("model-{:05}-of-{:06}.safetensors", shard + 1, options.num_shards);
    std::vector<SafetensorsTensor> tensors;
    for (const StoredTensor& one : stored) {
      if (one.shard != shard) continue;
      tensors.push_back({one.spec, one.bytes});
      index["weight_map"][one.spec.name] = name;
    }
    RETURN_IF_ERROR(WriteSafetensors(folder + "/" + name, tensors, {{"format", "pt"}}));
    if (options.is_misaligned) RETURN_IF_ERROR(Misalign(folder + "/" + name));
  }
  if (options.num_shards > 1) {
    std::ofstream(folder + "/model.safetensors.index.json") << DumpJson(index);
  }
  return Status::Ok();
}

}  // namespace

Json SmallConfig(ModelFamily family) {
  const bool is_v2 = family == ModelFamily::kV2Lite || family == ModelFamily::kV2;
  Json config = {{"hidden_act", "silu"},
                 {"attention_bias", false},
                 {"bos_token_id", 0},
                 {"eos_token_id", 1},
                 {"hidden_size", 64},
                 {"intermediate_size", 96},
                 {"moe_intermediate_size", 32},
                 {"num_hidden_layers", 3},
                 {"num_attention_heads", 2},
                 {"num_key_value_heads", 2},
                 {"q_lora_rank", nullptr},
                 {"kv_lora_rank", 64},
                 {"qk_nope_head_dim", 32},
                 {"qk_rope_head_dim", 32},
                 {"v_head_dim", 32},
                 {"vocab_size", 128},
                 {"n_routed_experts", 8},
                 {"n_shared_experts", is_v2 ? 2 : 1},
                 {"num_experts_per_tok", 3},
                 {"first_k_dense_replace", 1},
                 {"moe_layer_freq", 1},
                 {"max_position_embeddings", 4096},
                 {"rms_norm_eps", 1e-6},
                 {"rope_theta", 10000},
                 {"tie_word_embeddings", false}};
  config["rope_scaling"] = {{"type", "yarn"},
                            {"factor", 4.0},
                            {"original_max_position_embeddings", 64},
                            {"beta_fast", 32},
                            {"beta_slow", 1},
                            {"mscale", is_v2 ? 0.707 : 1.0},
                            {"mscale_all_dim", is_v2 ? 0.707 : 1.0}};
  const auto set = [&](const Json& keys) { config.update(keys); };
  if (is_v2) {
    set({{"model_type", "deepseek_v2"},
         {"scoring_func", "softmax"},
         {"topk_method", "greedy"},
         {"norm_topk_prob", false},
         {"routed_scaling_factor", 1.0},
         {"n_group", 1},
         {"topk_group", 1}});
  } else {
    set({{"model_type", family == ModelFamily::kV3 ? "deepseek_v3" : "deepseek_v32"},
         {"scoring_func", "sigmoid"},
         {"topk_method", "noaux_tc"},
         {"norm_topk_prob", true},
         {"routed_scaling_factor", 2.5},
         {"n_group", 4},
         {"topk_group", 2},
         {"num_nextn_predict_layers", 1}});
  }
  if (family != ModelFamily::kV2Lite) set({{"q_lora_rank", 32}});
  if (family == ModelFamily::kV2) {
    set({{"topk_method", "group_limited_greedy"},
         {"routed_scaling_factor", 4.0},
         {"n_group", 4},
         {"topk_group", 2}});
  }
  if (family == ModelFamily::kV32) {
    set({{"index_n_heads", 4}, {"index_head_dim", 64}, {"index_topk", 8}});
  }
  return config;
}

Status WriteRandomModel(const Json& config, const RandomModelOptions& options,
                        const std::string& folder) {
  ASSIGN_OR_RETURN(const ModelConfig parsed, ModelConfig::Parse(config, "config"));
  Json written = config;
  if (IsFp8(options.storage)) {
    written["quantization_config"] = {{"quant_method", "fp8"},
                                      {"fmt", "e4m3"},
                                      {"activation_scheme", "dynamic"},
                                      {"weight_block_size", {128, 128}}};
    if (options.storage == WeightStorage::kFp8PowersOfTwo) {
      written["quantization_config"]["scale_fmt"] = "ue8m0";
    }
  }
  std::ofstream(folder + "/config.json") << DumpJson(written);
  std::vector<StoredTensor> stored;
  for (const RandomTensor& tensor : TensorList(parsed).Build(options.has_mtp_copies)) {
    Store(tensor, options, &stored);
  }
  return WriteFiles(stored, options, folder);
}

}  // namespace hadal
