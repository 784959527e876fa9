#include "model/weight_store.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "base/quote.h"
#include "formats/weight_unpacker.h"
#include "model/kv_b_halves.h"
#include "model/weight_lookup.h"
#include "model/weight_names.h"
#include "model/weight_slots.h"
#include "tensor/group_tiles.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

template <class T>
T LoadAt(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// REQUIRES: one of the types that FindWeights lets through for vectors and scales.
void ConvertToFloat(const TensorInfo& tensor, float* out) {
  const std::byte* data = tensor.bytes.data();
  const int64_t count = tensor.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    switch (tensor.dtype) {
      case DType::kF32:
        out[i] = LoadAt<float>(data, i);
        break;
      case DType::kBF16:
        out[i] = Bf16ToFloat(LoadAt<uint16_t>(data, i));
        break;
      case DType::kF16:
        out[i] = Fp16ToFloat(LoadAt<uint16_t>(data, i));
        break;
      case DType::kF8E8M0:
        out[i] = E8m0ToFloat(LoadAt<uint8_t>(data, i));
        break;
      default:
        HADAL_CHECK(false);
    }
  }
}

class Binder {
 public:
  Binder(const Checkpoint& checkpoint, const ModelConfig& config, const FoundWeights& found,
         int num_threads)
      : checkpoint_(checkpoint), config_(config), found_(found), unpacker_(num_threads) {}

  Result<ModelWeights> Run() {
    model_.layers.resize(static_cast<size_t>(config_.num_hidden_layers));
    if (found_.has_mtp) model_.mtp.emplace();
    for (int layer = 0; layer < config_.num_hidden_layers; ++layer) ReserveExperts(layer);
    if (model_.mtp) ReserveExperts(config_.num_hidden_layers);

    for (const FoundWeight& weight : found_.weights) {
      if (std::vector<float>* vector = VectorSlot(weight); vector != nullptr) {
        vector->resize(static_cast<size_t>(weight.tensor->num_elements()));
        ConvertToFloat(*weight.tensor, vector->data());
      } else {
        QuantizedMatrix* matrix =
            ModelMatrix(config_, weight.role, weight.layer_idx, weight.expert_idx, &model_);
        HADAL_CHECK(matrix != nullptr);
        RETURN_IF_ERROR(BindMatrix(weight, matrix));
      }
    }
    if (config_.tie_word_embeddings) model_.head = model_.embedding;
    if (model_.mtp && model_.mtp->embedding.empty()) model_.mtp->embedding = model_.embedding;
    if (model_.mtp && model_.mtp->head.empty()) model_.mtp->head = model_.head;
    return std::move(model_);
  }

 private:
  LayerWeights& Layer(int layer_idx) {
    return layer_idx == config_.num_hidden_layers ? model_.mtp->layer
                                                  : model_.layers[static_cast<size_t>(layer_idx)];
  }

  void ReserveExperts(int layer_idx) {
    if (!config_.is_moe_layer(layer_idx)) return;
    FeedForwardWeights& feed_forward = Layer(layer_idx).feed_forward;
    const auto count = static_cast<size_t>(config_.n_routed_experts);
    feed_forward.expert_gate.resize(count);
    feed_forward.expert_up.resize(count);
    feed_forward.expert_down.resize(count);
  }

  Status BindMatrix(const FoundWeight& weight, QuantizedMatrix* matrix) {
    if (weight.packed != nullptr) {
      // Attention multiplies with both sides of kv_b, which goes slowly with tiles.
      const bool wants_floats = weight.role == WeightRole::kKvB;
      ASSIGN_OR_RETURN(UnpackedMatrix unpacked, unpacker_.Unpack(*weight.packed, wants_floats));
      for (const TensorInfo* tensor : {weight.packed->codes, weight.packed->scales}) {
        checkpoint_.DropPages(tensor->bytes);
      }
      *matrix = unpacked.matrix;
      model_.unpacked.push_back(std::move(unpacked.memory));
      return Status::Ok();
    }
    if (weight.split_key != nullptr) {
      JoinHalves(weight, matrix);
      return Status::Ok();
    }
    if (IsGrouped(weight.format)) {
      *matrix =
          GroupedView(weight.group_shape, weight.rows, weight.cols, weight.tensor->bytes.data());
      return Status::Ok();
    }
    matrix->format = weight.format;
    matrix->rows = weight.rows;
    matrix->cols = weight.cols;
    matrix->data = weight.tensor->bytes.data();
    if (weight.scales == nullptr) return Status::Ok();
    matrix->scale_stride = static_cast<int>(weight.scales->shape[1]);
    matrix->scales = weight.scales->bytes.data();
    if (weight.scales->dtype == DType::kF32) return Status::Ok();
    return ConvertScales(*weight.scales, matrix);
  }

  void JoinHalves(const FoundWeight& weight, QuantizedMatrix* matrix) {
    auto& joined =
        model_.joined.emplace_back(JoinKvBHalves(config_, *weight.split_key, *weight.split_value));
    *matrix = {.format = QuantFormat::kF32,
               .rows = weight.rows,
               .cols = weight.cols,
               .data = reinterpret_cast<const std::byte*>(joined.data())};
  }

  Status ConvertScales(const TensorInfo& scales, QuantizedMatrix* matrix) {
    const auto count = static_cast<size_t>(scales.num_elements());
    auto& converted = model_.converted_scales.emplace_back(std::make_unique<float[]>(count));
    ConvertToFloat(scales, converted.get());
    for (size_t i = 0; i < count; ++i) {
      if (std::isfinite(converted[i])) continue;
      return Status::Corrupt(fmt::format("tensor {}: element {}: expected a finite scale, found {}",
                                         Quoted(scales.name), i, converted[i]));
    }
    matrix->scales = reinterpret_cast<const std::byte*>(converted.get());
    return Status::Ok();
  }

  // Null for roles that are matrices.
  std::vector<float>* VectorSlot(const FoundWeight& weight) {
    switch (weight.role) {
      case WeightRole::kFinalNorm:
        return &model_.final_norm;
      case WeightRole::kMtpEmbeddingNorm:
        return &model_.mtp->enorm;
      case WeightRole::kMtpHiddenNorm:
        return &model_.mtp->hnorm;
      case WeightRole::kMtpHeadNorm:
        return &model_.mtp->shared_head_norm;
      case WeightRole::kInputNorm:
        return &Layer(weight.layer_idx).input_norm;
      case WeightRole::kPostAttentionNorm:
        return &Layer(weight.layer_idx).post_attention_norm;
      case WeightRole::kQANorm:
        return &Layer(weight.layer_idx).attention.q_a_norm;
      case WeightRole::kKvANorm:
        return &Layer(weight.layer_idx).attention.kv_a_norm;
      case WeightRole::kIndexerKNorm:
        return &Layer(weight.layer_idx).attention.indexer.k_norm;
      case WeightRole::kIndexerKNormBias:
        return &Layer(weight.layer_idx).attention.indexer.k_norm_bias;
      case WeightRole::kCorrectionBias:
        return &Layer(weight.layer_idx).feed_forward.correction_bias;
      default:
        return nullptr;
    }
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const FoundWeights& found_;
  WeightUnpacker unpacker_;
  ModelWeights model_;
};

}  // namespace

Result<ModelWeights> BindWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                                 int num_threads) {
  ASSIGN_OR_RETURN(const FoundWeights found, FindWeights(checkpoint, config));
  Result<ModelWeights> weights = Binder(checkpoint, config, found, num_threads).Run();
  if (!weights.ok()) return weights.status().Annotate(checkpoint.path());
  return weights;
}

}  // namespace hadal
