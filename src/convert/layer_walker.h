// Runs a model over a calibration text layer by layer, so that each layer can be rounded on the
// inputs that the rounded layers before it give, and only one layer is in memory.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "convert/layer_inputs.h"
#include "convert/recording_backend.h"
#include "model/activations.h"
#include "model/latent_cache.h"
#include "model/model_config.h"
#include "model/rope_table.h"
#include "model/weight_store.h"

namespace hadal {

class LayerWalker {
 public:
  // `windows` are sequences of their own, at least one, of valid ids; `weights` are wide.
  // Everything referred to must outlive the walker. kResourceExhausted.
  static Result<std::unique_ptr<LayerWalker>> Create(
      const ModelConfig& config, const ModelWeights& weights,
      const std::vector<std::vector<TokenId>>& windows, Backend* backend);

  // Layers in order, each first observed and then left behind.
  // What the products of the layer see when it runs with the wide weights.
  std::unique_ptr<LayerInputs> Observe(int layer_idx);
  // Takes the hidden states through the layer with these weights.
  void Advance(int layer_idx, const LayerWeights& weights);

  // After the last layer: the moments of the head's input.
  InputMoments FinalMoments();

  // Then the multi-token-prediction module: the moments of eh_proj's input; with a rounded eh_proj
  // into its layer, which is the next to be observed.
  InputMoments EnterMtp();
  void ProjectMtp(const QuantizedMatrix& eh_proj);

 private:
  LayerWalker(const ModelConfig& config, const ModelWeights& weights,
              const std::vector<std::vector<TokenId>>& windows, Backend* backend);
  Status Prepare();
  enum class Outcome { kDropped, kKept };
  void RunLayer(int layer_idx, const LayerWeights& weights, Outcome outcome);
  // Windows that run together, so that weights are read for many tokens at once.
  struct Step {
    size_t first_row = 0;  // in hidden_
    int num_tokens = 0;
    std::vector<int32_t> positions, slots;
    std::vector<AttentionRange> ranges;
    std::vector<int> sizes;  // of the windows
  };
  void PlanSteps();
  FloatMatrix Hidden(const Step& step);

  const ModelConfig& config_;
  const ModelWeights& weights_;
  std::vector<std::vector<TokenId>> windows_;
  Backend* inner_;
  RecordingBackend backend_;
  RopeTable rope_;
  LatentCache cache_;
  Activations activations_;
  std::vector<Step> steps_;
  std::vector<int32_t> tokens_, block_ids_;
  std::vector<float> hidden_;  // [tokens, hidden_size]
  std::vector<float> joined_;  // [pairs, 2 * hidden_size], of the MTP module
};

}  // namespace hadal
