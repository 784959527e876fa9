// A DeepSeek model: embedding, layers, last norm, logits, and the module that guesses one token
// further. Weights and equations; what changes in a step is in the arguments.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "formats/checkpoint.h"
#include "model/activations.h"
#include "model/decoder_layer.h"
#include "model/expert_load.h"
#include "model/forward_batch.h"
#include "model/latent_cache.h"
#include "model/model_config.h"
#include "model/rope_table.h"
#include "model/weight_store.h"

namespace hadal {

struct ModelLoadOptions {
  // Weights that take no more than this are copied out of their files (see resident_weights.h).
  int64_t max_resident_bytes = -1;
  // What wide weights are rounded to (see round_weights.h), instead of being copied; empty: they
  // stay as they are.
  std::optional<GroupShape> weight_format = {};
  // Whether inputs of weights in GGUF's blocks are rounded to bytes (see block_inputs.h).
  bool rounds_block_inputs = false;
};

class Model {
 public:
  // Binds the weights of an open checkpoint, whose mapping the model keeps alive. kCorrupt and
  // kUnsupported as in ModelConfig::Parse and BindWeights; kResourceExhausted when memory is short;
  // others as in RoundWeights.
  static Result<std::unique_ptr<Model>> Load(std::unique_ptr<Checkpoint> checkpoint,
                                             const ModelLoadOptions& options, Backend* backend);

  const ModelConfig& config() const { return config_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const ModelWeights& weights() const { return weights_; }
  bool has_mtp() const { return weights_.mtp.has_value(); }
  // Of all passes so far; the module's layer last, when there is one.
  const ExpertLoad& expert_load() const { return expert_load_; }

  // Runs the batch through all layers and stores its cache rows. Afterwards activations->normed
  // holds the final hidden states (after the last norm) of all its tokens. Between layers it looks
  // at batch.stop: false when it was broken off, and then only the batch's own cache rows have
  // changed.
  bool Forward(const ForwardBatch& batch, LatentCache* cache, Activations* activations);

  // activations->logits[i] = head * activations->normed[rows[i]], after Forward. REQUIRES: rows
  // fit.
  void ComputeLogits(std::span<const int32_t> rows, Activations* activations);

  // The multi-token-prediction module for one batch of pairs: token i + 1 joined with the main
  // model's final hidden state of token i (activations->mtp_hidden), at position i, in the module's
  // own layer of the cache. batch.tokens are the later tokens, batch.positions those of the earlier
  // ones. Afterwards activations->normed holds its normalised states. DeepSeek-V3 report, 2.2;
  // specification, 5.1. REQUIRES: has_mtp().
  void ForwardMtp(const ForwardBatch& batch, LatentCache* cache, Activations* activations);

  // activations->logits[i] = the module's head * activations->normed[rows[i]], after ForwardMtp.
  void ComputeMtpLogits(std::span<const int32_t> rows, Activations* activations);

 private:
  Model(std::unique_ptr<Checkpoint> checkpoint, ModelConfig config, ModelWeights weights,
        Backend* backend);
  void LoadAngles(const ForwardBatch& batch, Activations* activations) const;
  void Project(const QuantizedMatrix& head, std::span<const int32_t> rows,
               Activations* activations);

  std::unique_ptr<Checkpoint> checkpoint_;
  ModelConfig config_;
  ModelWeights weights_;
  Backend* backend_;
  RopeTable rope_;
  ExpertLoad expert_load_;
  std::vector<DecoderLayer> layers_;  // the module's layer last, when there is one
};

}  // namespace hadal
