// The feed-forward of one layer: dense, or routed experts beside a shared one. Specification, 3.10
// and 4.
#pragma once

#include <optional>
#include <span>

#include "backend/backend.h"
#include "model/activations.h"
#include "model/expert_load.h"
#include "model/expert_router.h"
#include "model/forward_batch.h"
#include "model/model_config.h"
#include "model/weight_store.h"

namespace hadal {

class FeedForward {
 public:
  // layer_idx names the layer in what is counted.
  FeedForward(const ModelConfig& config, const FeedForwardWeights& weights, int layer_idx,
              Backend* backend);

  // hidden += feed_forward(normed) for the rows of the batch's tokens. The choices of experts are
  // counted in `load`; null: nowhere. Unfinished when the batch was stopped.
  void Forward(const ForwardBatch& batch, Activations* activations, ExpertLoad* load);

 private:
  // Scores to choices.
  void RouteTokens(int num_tokens, Activations* activations);

  const FeedForwardWeights& weights_;
  int layer_idx_;
  Backend* backend_;
  std::optional<ExpertRouter> router_;  // of a layer with experts
};

}  // namespace hadal
