#include "model/weight_slots.h"

namespace hadal {
namespace {

QuantizedMatrix* LayerSlot(WeightRole role, LayerWeights* layer) {
  AttentionWeights& attention = layer->attention;
  FeedForwardWeights& feed_forward = layer->feed_forward;
  switch (role) {
    case WeightRole::kQ:
      return &attention.q;
    case WeightRole::kQA:
      return &attention.q_a;
    case WeightRole::kQB:
      return &attention.q_b;
    case WeightRole::kKvA:
      return &attention.kv_a;
    case WeightRole::kKvB:
      return &attention.kv_b;
    case WeightRole::kOut:
      return &attention.out;
    case WeightRole::kIndexerQB:
      return &attention.indexer.q_b;
    case WeightRole::kIndexerK:
      return &attention.indexer.k;
    case WeightRole::kIndexerWeights:
      return &attention.indexer.weights;
    case WeightRole::kGate:
    case WeightRole::kSharedGate:
      return &feed_forward.gate;
    case WeightRole::kUp:
    case WeightRole::kSharedUp:
      return &feed_forward.up;
    case WeightRole::kDown:
    case WeightRole::kSharedDown:
      return &feed_forward.down;
    case WeightRole::kRouter:
      return &feed_forward.router;
    default:
      return nullptr;
  }
}

QuantizedMatrix* ExpertSlot(WeightRole role, int expert_idx, FeedForwardWeights* feed_forward) {
  const auto expert = static_cast<size_t>(expert_idx);
  switch (role) {
    case WeightRole::kExpertGate:
      return &feed_forward->expert_gate[expert];
    case WeightRole::kExpertUp:
      return &feed_forward->expert_up[expert];
    case WeightRole::kExpertDown:
      return &feed_forward->expert_down[expert];
    default:
      return nullptr;
  }
}

}  // namespace

QuantizedMatrix* LayerMatrix(WeightRole role, int expert_idx, LayerWeights* layer) {
  return expert_idx >= 0 ? ExpertSlot(role, expert_idx, &layer->feed_forward)
                         : LayerSlot(role, layer);
}

QuantizedMatrix* ModelMatrix(const ModelConfig& config, WeightRole role, int layer_idx,
                             int expert_idx, ModelWeights* model) {
  switch (role) {
    case WeightRole::kEmbedding:
      return &model->embedding;
    case WeightRole::kHead:
      return &model->head;
    case WeightRole::kMtpEmbedding:
      return &model->mtp->embedding;
    case WeightRole::kMtpProjection:
      return &model->mtp->eh_proj;
    case WeightRole::kMtpHead:
      return &model->mtp->head;
    default:
      break;
  }
  if (layer_idx < 0) return nullptr;
  LayerWeights* layer = layer_idx == config.num_hidden_layers
                            ? &model->mtp->layer
                            : &model->layers[static_cast<size_t>(layer_idx)];
  return LayerMatrix(role, expert_idx, layer);
}

}  // namespace hadal
