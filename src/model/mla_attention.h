// Multi-head latent attention of one layer. DeepSeek-V2 report, 2.1; specification, 3.3.
#pragma once

#include <optional>

#include "backend/backend.h"
#include "model/activations.h"
#include "model/forward_batch.h"
#include "model/latent_cache.h"
#include "model/model_config.h"
#include "model/token_indexer.h"
#include "model/weight_store.h"

namespace hadal {

// The sizes of the attention of every layer of a model.
HeadShape AttentionShape(const ModelConfig& config);

class MlaAttention {
 public:
  MlaAttention(const ModelConfig& config, const AttentionWeights& weights, int layer_idx,
               Backend* backend);

  // hidden += W_o attention(normed); stores the latents of the batch's tokens.
  // REQUIRES: activations->cos and ->sin hold the angles of the batch's positions.
  void Forward(const ForwardBatch& batch, LatentCache* cache, Activations* activations);

 private:
  void ProjectInput(int num_tokens, Activations* activations);
  void FinishQueries(int num_tokens, Activations* activations);
  void StoreLatents(const ForwardBatch& batch, LatentCache* cache, Activations* activations);

  const AttentionWeights& weights_;
  HeadShape shape_;
  float eps_, softmax_scale_;
  int layer_idx_;
  Backend* backend_;
  std::optional<TokenIndexer> indexer_;
};

}  // namespace hadal
