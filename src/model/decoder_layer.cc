#include "model/decoder_layer.h"

namespace hadal {

DecoderLayer::DecoderLayer(const ModelConfig& config, const LayerWeights& weights, int layer_idx,
                           Backend* backend)
    : weights_(weights),
      eps_(static_cast<float>(config.rms_norm_eps)),
      backend_(backend),
      attention_(config, weights.attention, layer_idx, backend),
      feed_forward_(config, weights.feed_forward, layer_idx, backend) {}

void DecoderLayer::Forward(const ForwardBatch& batch, LatentCache* cache, Activations* activations,
                           ExpertLoad* load) {
  const FloatMatrix hidden = activations->hidden.Rows(0, batch.num_tokens());
  const FloatMatrix normed = activations->normed.Rows(0, batch.num_tokens());
  backend_->RmsNorm(hidden, weights_.input_norm, eps_, normed);
  attention_.Forward(batch, cache, activations);
  if (batch.is_stopped()) return;
  backend_->RmsNorm(hidden, weights_.post_attention_norm, eps_, normed);
  feed_forward_.Forward(batch, activations, load);
}

}  // namespace hadal
