#include "model/feed_forward.h"

#include <algorithm>

namespace hadal {

FeedForward::FeedForward(const ModelConfig& config, const FeedForwardWeights& weights,
                         int layer_idx, Backend* backend)
    : weights_(weights), layer_idx_(layer_idx), backend_(backend) {
  if (!weights.router.empty()) router_.emplace(config);
}

void FeedForward::Forward(const ForwardBatch& batch, Activations* activations, ExpertLoad* load) {
  const int num_tokens = batch.num_tokens();
  const FloatMatrix normed = activations->normed.Rows(0, num_tokens);
  const FloatMatrix hidden = activations->hidden.Rows(0, num_tokens);
  if (!router_) {
    const FloatMatrix gated = activations->gated.Rows(0, num_tokens).Cols(0, weights_.gate.rows);
    backend_->GatedMatMul(normed, weights_.gate, weights_.up, gated);
    backend_->MatMulAdd(gated, weights_.down, hidden);
    return;
  }
  // mixed = Shared(x) + sum over chosen experts, best first; the shared expert is neither weighted
  // nor scaled.
  const FloatMatrix mixed = activations->mixed.Rows(0, num_tokens);
  if (weights_.gate.empty()) {
    for (int t = 0; t < num_tokens; ++t) std::ranges::fill(mixed.row(t), 0.0f);
  } else {
    const FloatMatrix gated = activations->gated.Rows(0, num_tokens).Cols(0, weights_.gate.rows);
    backend_->GatedMatMul(normed, weights_.gate, weights_.up, gated);
    backend_->MatMul(gated, weights_.down, mixed);
  }
  backend_->MatMul(normed, weights_.router, activations->router_scores.Rows(0, num_tokens));
  if (batch.is_stopped()) return;  // products may be unfinished, and routing wants true scores
  RouteTokens(num_tokens, activations);
  if (load != nullptr) load->Count(layer_idx_, activations->expert_ids.Rows(0, num_tokens));
  backend_->ExpertMlp(
      normed,
      {.gate = weights_.expert_gate, .up = weights_.expert_up, .down = weights_.expert_down},
      {.ids = activations->expert_ids.Rows(0, num_tokens),
       .weights = activations->expert_weights.Rows(0, num_tokens)},
      mixed);
  backend_->Add(mixed, hidden);
}

void FeedForward::RouteTokens(int num_tokens, Activations* activations) {
  const FloatMatrix scores = activations->router_scores.Rows(0, num_tokens);
  for (int t = 0; t < num_tokens; ++t) {
    router_->Route(scores.row(t), weights_.correction_bias, activations->expert_ids.row(t),
                   activations->expert_weights.row(t));
  }
}

}  // namespace hadal
