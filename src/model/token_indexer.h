// The indexer of DeepSeek sparse attention: picks the positions that a token attends. DeepSeek-V3.2
// report; specification, 6.
#pragma once

#include "backend/backend.h"
#include "model/activations.h"
#include "model/forward_batch.h"
#include "model/latent_cache.h"
#include "model/model_config.h"
#include "model/weight_store.h"

namespace hadal {

class TokenIndexer {
 public:
  TokenIndexer(const ModelConfig& config, const IndexerWeights& weights, int layer_idx,
               Backend* backend);

  // Stores the index keys of the batch's tokens, always: later tokens choose among them. Where a
  // range is sparse, fills activations->selection for its rows. REQUIRES: normed and query_latent
  // hold the attention's inputs of this layer.
  void Select(const ForwardBatch& batch, LatentCache* cache, Activations* activations);

 private:
  void Rotate(FloatMatrix x, int num_parts, const Activations& activations) const;

  const IndexerWeights& weights_;
  int num_heads_, head_dim_, rope_dim_, topk_;
  RopeStyle rope_style_;
  int layer_idx_;
  Backend* backend_;
};

}  // namespace hadal
