#include "model/block_inputs.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace hadal {
namespace {

constexpr int kGroupSize = 32;

void Mark(QuantizedMatrix* matrix) {
  if (!matrix->empty() && IsBlocked(matrix->format)) matrix->group_size = kGroupSize;
}

using Experts = std::vector<QuantizedMatrix>;

bool AreAlike(const Experts& experts, const QuantizedMatrix& first) {
  return std::ranges::all_of(
      experts, [&](const QuantizedMatrix& expert) { return expert.format == first.format; });
}

// Matrices that one operation gives the same rows must be alike, because those are rounded once.
void MarkExperts(std::initializer_list<Experts*> together) {
  if ((*together.begin())->empty()) return;
  const QuantizedMatrix& first = (*together.begin())->front();
  if (!std::ranges::all_of(together, [&](const Experts* e) { return AreAlike(*e, first); })) return;
  for (Experts* experts : together) {
    for (QuantizedMatrix& expert : *experts) Mark(&expert);
  }
}

void MarkLayer(LayerWeights* layer) {
  AttentionWeights& attention = layer->attention;
  FeedForwardWeights& feed_forward = layer->feed_forward;
  for (QuantizedMatrix* matrix :
       {&attention.q, &attention.q_a, &attention.q_b, &attention.kv_a, &attention.out,
        &attention.indexer.q_b, &attention.indexer.k, &feed_forward.down}) {
    Mark(matrix);
  }
  if (feed_forward.gate.format == feed_forward.up.format) {
    Mark(&feed_forward.gate);
    Mark(&feed_forward.up);
  }
  MarkExperts({&feed_forward.expert_gate, &feed_forward.expert_up});
  MarkExperts({&feed_forward.expert_down});
}

}  // namespace

void RoundBlockInputs(ModelWeights* weights) {
  for (LayerWeights& layer : weights->layers) MarkLayer(&layer);
  Mark(&weights->head);
  if (!weights->mtp) return;
  MarkLayer(&weights->mtp->layer);
  Mark(&weights->mtp->eh_proj);
  Mark(&weights->mtp->head);
}

}  // namespace hadal
