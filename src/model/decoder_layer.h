// One decoder layer: norm, attention, add, norm, feed-forward, add. Specification, 3.1.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "model/activations.h"
#include "model/expert_load.h"
#include "model/feed_forward.h"
#include "model/forward_batch.h"
#include "model/latent_cache.h"
#include "model/mla_attention.h"
#include "model/model_config.h"
#include "model/weight_store.h"

namespace hadal {

class DecoderLayer {
 public:
  // Everything referred to must outlive the layer. layer_idx also names the layer of the cache.
  DecoderLayer(const ModelConfig& config, const LayerWeights& weights, int layer_idx,
               Backend* backend);

  // Advances activations->hidden for all tokens of the batch and stores their cache rows. The
  // choices of experts are counted in `load`; null: nowhere.
  void Forward(const ForwardBatch& batch, LatentCache* cache, Activations* activations,
               ExpertLoad* load = nullptr);

 private:
  const LayerWeights& weights_;
  float eps_;
  Backend* backend_;
  MlaAttention attention_;
  FeedForward feed_forward_;
};

}  // namespace hadal
