#include "model/block_inputs.h"

namespace hadal {
namespace {

constexpr int kGroupSize = 32;

void Mark(QuantizedMatrix* matrix) {
  if (!matrix->empty() && IsBlocked(matrix->format)) matrix->group_size = kGroupSize;
}

void MarkLayer(LayerWeights* layer) {
  AttentionWeights& attention = layer->attention;
  FeedForwardWeights& feed_forward = layer->feed_forward;
  for (QuantizedMatrix* matrix : {&attention.q, &attention.q_a, &attention.q_b, &attention.kv_a,
                                  &attention.out, &attention.indexer.q_b, &attention.indexer.k,
                                  &feed_forward.gate, &feed_forward.up, &feed_forward.down}) {
    Mark(matrix);
  }
  for (auto* experts :
       {&feed_forward.expert_gate, &feed_forward.expert_up, &feed_forward.expert_down}) {
    for (QuantizedMatrix& expert : *experts) Mark(&expert);
  }
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
