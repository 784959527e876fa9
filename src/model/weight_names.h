// The one table of a DeepSeek model's weights: what each is for, how the published checkpoints call
// it, and its shape as a function of the config. Specification, 2.1 to 2.7.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_config.h"

namespace hadal {

// What a weight is for; the words of weight_store.h.
enum class WeightRole : uint8_t {
  kEmbedding,
  kFinalNorm,
  kHead,
  kInputNorm,
  kPostAttentionNorm,
  kQ,
  kQA,
  kQANorm,
  kQB,
  kKvA,
  kKvANorm,
  kKvB,
  kOut,
  kIndexerQB,
  kIndexerK,
  kIndexerKNorm,
  kIndexerKNormBias,
  kIndexerWeights,
  kGate,
  kUp,
  kDown,
  kRouter,
  kCorrectionBias,
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kMtpEmbedding,
  kMtpEmbeddingNorm,
  kMtpHiddenNorm,
  kMtpProjection,
  kMtpHeadNorm,
  kMtpHead,
};

// Where the bytes and the work of a model are, for people.
enum class WeightPart : uint8_t {
  kEmbedding,
  kHead,
  kNorms,
  kAttention,
  kIndexer,
  kDense,
  kRouter,
  kSharedExperts,
  kExperts,
};
inline constexpr int kNumWeightParts = 9;

// "embedding", "head", "norms", ...
std::string_view WeightPartName(WeightPart part);

// One tensor that a checkpoint of this config holds.
struct ExpectedWeight {
  WeightRole role = WeightRole::kEmbedding;
  WeightPart part = WeightPart::kEmbedding;
  std::string name;
  std::vector<int64_t> shape;  // [output features, input features], or [size] of a vector
  int layer_idx = -1;          // the file's numbering; num_hidden_layers is the MTP layer; -1: none
  int expert_idx = -1;
  bool has_fallback = false;  // MTP's copies of embedding and head: the main ones stand in

  int64_t num_elements() const { return shape.size() == 2 ? shape[0] * shape[1] : shape[0]; }
};

// Calls `visit` for every weight of the main model in the order of the computation; the same object
// is reused between calls. With tie_word_embeddings there is no head.
void ForEachWeight(const ModelConfig& config,
                   const std::function<void(const ExpectedWeight&)>& visit);

// The same for the multi-token-prediction layer, num_hidden_layers in the file's numbering.
// Specification, 2.6.
void ForEachMtpWeight(const ModelConfig& config,
                      const std::function<void(const ExpectedWeight&)>& visit);

// "model.layers.3."
std::string LayerPrefix(int layer_idx);

// The scales of an FP8 weight: "<name>_scale_inv", one float for 128 x 128 elements, the last block
// of a side possibly smaller. Specification, 2.5.
std::string ScaleName(std::string_view weight_name);
std::vector<int64_t> ScaleShape(const std::vector<int64_t>& weight_shape);

}  // namespace hadal
