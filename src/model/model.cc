#include "model/model.h"

#include <atomic>
#include <utility>

#include "model/block_inputs.h"
#include "model/mtp_input.h"
#include "model/resident_weights.h"
#include "model/round_weights.h"

namespace hadal {
namespace {

// Lets the backend leave a step early, while it lives.
class StopWatch {
 public:
  StopWatch(const std::atomic<bool>* stop, Backend* backend) : backend_(backend) {
    backend_->WatchStop(stop);
  }
  ~StopWatch() { backend_->WatchStop(nullptr); }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  Backend* backend_;
};

}  // namespace

Result<std::unique_ptr<Model>> Model::Load(std::unique_ptr<Checkpoint> checkpoint,
                                           const ModelLoadOptions& options, Backend* backend) {
  ASSIGN_OR_RETURN(ModelConfig config,
                   ModelConfig::Parse(checkpoint->config(), checkpoint->config_path()));
  ASSIGN_OR_RETURN(ModelWeights weights, BindWeights(*checkpoint, config, backend->num_threads()));
  if (options.rounds_block_inputs) RoundBlockInputs(&weights);
  if (options.weight_format) {
    const Status status = RoundWeights(config, *options.weight_format, backend, &weights);
    if (!status.ok()) return status.Annotate(checkpoint->path());
    config.has_grouped_weights = true;
  } else if (weights.unpacked.empty() && ResidentBytes(weights) <= options.max_resident_bytes) {
    RETURN_IF_ERROR(MakeResident(*checkpoint, backend, &weights));
  }
  return std::unique_ptr<Model>(
      new Model(std::move(checkpoint), std::move(config), std::move(weights), backend));
}

Model::Model(std::unique_ptr<Checkpoint> checkpoint, ModelConfig config, ModelWeights weights,
             Backend* backend)
    : checkpoint_(std::move(checkpoint)),
      config_(std::move(config)),
      weights_(std::move(weights)),
      backend_(backend),
      rope_(config_),
      expert_load_(config_.num_stored_layers(), config_.n_routed_experts) {
  layers_.reserve(static_cast<size_t>(config_.num_stored_layers()));
  for (int layer = 0; layer < config_.num_hidden_layers; ++layer) {
    layers_.emplace_back(config_, weights_.layers[static_cast<size_t>(layer)], layer, backend_);
  }
  if (weights_.mtp) {
    layers_.emplace_back(config_, weights_.mtp->layer, config_.num_hidden_layers, backend_);
  }
}

void Model::LoadAngles(const ForwardBatch& batch, Activations* activations) const {
  rope_.FillAngles(batch.positions, activations->cos, activations->sin);
  if (!config_.has_indexer()) return;
  rope_.FillPlainAngles(batch.positions, activations->index_cos, activations->index_sin);
}

bool Model::Forward(const ForwardBatch& batch, LatentCache* cache, Activations* activations) {
  LoadAngles(batch, activations);
  const FloatMatrix hidden = activations->hidden.Rows(0, batch.num_tokens());
  backend_->Embed(batch.tokens, weights_.embedding, hidden);
  const StopWatch watch(batch.stop, backend_);
  for (int layer = 0; layer < config_.num_hidden_layers; ++layer) {
    if (batch.is_stopped()) return false;
    layers_[static_cast<size_t>(layer)].Forward(batch, cache, activations, &expert_load_);
  }
  if (batch.is_stopped()) return false;
  backend_->RmsNorm(hidden, weights_.final_norm, static_cast<float>(config_.rms_norm_eps),
                    activations->normed.Rows(0, batch.num_tokens()));
  return true;
}

void Model::ComputeLogits(std::span<const int32_t> rows, Activations* activations) {
  Project(weights_.head, rows, activations);
}

void Model::ForwardMtp(const ForwardBatch& batch, LatentCache* cache, Activations* activations) {
  const MtpWeights& mtp = *weights_.mtp;
  const int num_tokens = batch.num_tokens();
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  LoadAngles(batch, activations);
  const FloatMatrix hidden = activations->hidden.Rows(0, num_tokens);
  backend_->Embed(batch.tokens, mtp.embedding, hidden);
  ProjectMtpInput(mtp, eps, hidden, activations->mtp_hidden.Rows(0, num_tokens),
                  activations->mtp_joined.Rows(0, num_tokens), hidden, backend_);
  layers_[static_cast<size_t>(config_.num_hidden_layers)].Forward(batch, cache, activations,
                                                                  &expert_load_);
  backend_->RmsNorm(hidden, mtp.shared_head_norm, eps, activations->normed.Rows(0, num_tokens));
}

void Model::ComputeMtpLogits(std::span<const int32_t> rows, Activations* activations) {
  Project(weights_.mtp->head, rows, activations);
}

void Model::Project(const QuantizedMatrix& head, std::span<const int32_t> rows,
                    Activations* activations) {
  const int num_rows = static_cast<int>(rows.size());
  const FloatMatrix inputs = activations->logit_inputs.Rows(0, num_rows);
  backend_->GatherRows(activations->normed, rows, inputs);
  backend_->MatMul(inputs, head, activations->logits.Rows(0, num_rows));
}

}  // namespace hadal
