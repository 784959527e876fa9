#include "convert/quantize_checkpoint.h"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/check.h"
#include "base/checksum.h"
#include "base/json.h"
#include "convert/layer_walker.h"
#include "convert/quantize_plan.h"
#include "convert/small_files.h"
#include "convert/weight_rounding.h"
#include "formats/resumable_writer.h"
#include "formats/sharded_writer.h"
#include "model/weight_slots.h"
#include "model/weight_store.h"
#include "sys/thread_pool.h"
#include "tensor/group_tiles.h"

namespace hadal {
namespace {

constexpr int kQuantizeVersion = 1;  // of what the same options give; part of the fingerprint

// Everything that the bytes of the result depend on.
std::string Fingerprint(const QuantizeOptions& options, const Checkpoint& checkpoint) {
  std::string text = fmt::format("{} {} {} {}", kQuantizeVersion, DumpJson(checkpoint.config()),
                                 DumpJson(options.recipe.ToJson()), options.shard_bytes);
  text += fmt::format(" {} {}", options.feedback.damping, options.feedback.num_sweeps);
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    text += fmt::format("|{} {} {}", tensor.name, DTypeName(tensor.dtype),
                        fmt::join(tensor.shape, ","));
    // The first bytes tell two models of one shape apart.
    const auto head = tensor.bytes.first(std::min<size_t>(tensor.bytes.size(), 64));
    text += fmt::format(" {:x}", Checksum(head));
  }
  for (const auto& window : options.calibration) {
    text += fmt::format("#{:x}", Checksum(std::as_bytes(std::span(window))));
  }
  return fmt::format("{:016x}", Checksum(std::as_bytes(std::span(text))));
}

class Quantizer {
 public:
  Quantizer(const QuantizeOptions& options, const ModelConfig& config, ModelWeights* weights,
            const QuantizePlan& plan, Backend* backend, ResumableWriter* writer,
            const QuantizeProgress& progress)
      : options_(options),
        config_(config),
        weights_(weights),
        plan_(plan),
        backend_(backend),
        writer_(writer),
        progress_(progress),
        pool_(backend->num_threads()),
        rounding_(backend, &pool_),
        total_(plan.num_elements()) {
    for (const QuantizeItem& item : plan.items) layers_[item.layer_idx].push_back(&item);
  }

  Status Run() {
    if (options_.calibration.empty() || IsAllDone()) {
      for (const QuantizeItem& item : plan_.items) RETURN_IF_ERROR(Store(item, nullptr));
      return Status::Ok();
    }
    return RunCalibrated();
  }

 private:
  bool IsDone(const QuantizeItem& item) const {
    return writer_->is_done(item.spec_idx) &&
           (item.scales_spec_idx < 0 || writer_->is_done(item.scales_spec_idx));
  }
  bool IsAllDone() const {
    return std::ranges::all_of(plan_.items, [this](const auto& item) { return IsDone(item); });
  }

  const QuantizedMatrix& Source(const QuantizeItem& item) {
    const QuantizedMatrix* matrix =
        ModelMatrix(config_, item.role, item.layer_idx, item.expert_idx, weights_);
    HADAL_CHECK(matrix != nullptr);
    return *matrix;
  }

  // What the finished model will compute with. REQUIRES: the item is done.
  QuantizedMatrix Stored(const QuantizeItem& item) {
    switch (item.target.kind) {
      case WeightTarget::Kind::kAsIs:
        return Source(item);
      case WeightTarget::Kind::kGrouped:
        return GroupedView(item.target.shape, item.rows, item.cols,
                           writer_->bytes(item.spec_idx).data());
      case WeightTarget::Kind::kFp8:
        break;
    }
    QuantizedMatrix matrix;
    matrix.format = QuantFormat::kF8Block128;
    matrix.rows = item.rows;
    matrix.cols = item.cols;
    matrix.data = writer_->bytes(item.spec_idx).data();
    matrix.scales = writer_->bytes(item.scales_spec_idx).data();
    matrix.scale_stride = CeilDiv(item.cols, kF8BlockSize);
    return matrix;
  }

  Status Store(const QuantizeItem& item, FeedbackRounder* rounder) {
    if (!IsDone(item)) {
      switch (item.target.kind) {
        case WeightTarget::Kind::kAsIs:
          RETURN_IF_ERROR(writer_->Put(item.spec_idx, item.source->bytes));
          if (item.source_scales != nullptr) {
            RETURN_IF_ERROR(writer_->Put(item.scales_spec_idx, item.source_scales->bytes));
          }
          break;
        case WeightTarget::Kind::kGrouped: {
          ASSIGN_OR_RETURN(const std::vector<std::byte> tiles,
                           rounding_.ToTiles(Source(item), item.name, item.target.shape, rounder));
          RETURN_IF_ERROR(writer_->Put(item.spec_idx, tiles));
          break;
        }
        case WeightTarget::Kind::kFp8: {
          ASSIGN_OR_RETURN(const WeightRounding::Fp8Matrix fp8,
                           rounding_.ToFp8(Source(item), item.name));
          RETURN_IF_ERROR(writer_->Put(item.spec_idx, fp8.codes));
          RETURN_IF_ERROR(writer_->Put(item.scales_spec_idx, std::as_bytes(std::span(fp8.scales))));
          break;
        }
      }
    }
    done_ += item.num_elements();
    return progress_ ? progress_(done_, total_) : Status::Ok();
  }

  Status RunCalibrated() {
    ASSIGN_OR_RETURN(const std::unique_ptr<LayerWalker> walker,
                     LayerWalker::Create(config_, *weights_, options_.calibration, backend_));
    for (int layer = 0; layer < config_.num_hidden_layers; ++layer) {
      RETURN_IF_ERROR(RunLayer(layer, walker.get()));
    }
    {
      const FeedbackRounder head(walker->FinalMoments(), options_.feedback, backend_, &pool_);
      for (const QuantizeItem* item : layers_[-1]) {
        RETURN_IF_ERROR(Store(*item, const_cast<FeedbackRounder*>(&head)));
      }
    }
    const int mtp = config_.num_hidden_layers;
    if (!layers_.contains(mtp)) return Status::Ok();
    {
      FeedbackRounder rounder(walker->EnterMtp(), options_.feedback, backend_, &pool_);
      for (const QuantizeItem* item : layers_[mtp]) {
        if (item->role != WeightRole::kMtpProjection) continue;
        RETURN_IF_ERROR(Store(*item, &rounder));
        walker->ProjectMtp(Stored(*item));
      }
    }
    return RunLayer(mtp, walker.get());
  }

  Status RunLayer(int layer, LayerWalker* walker) {
    const std::vector<const QuantizeItem*>& items = layers_[layer];
    std::unique_ptr<LayerInputs> inputs;
    if (!std::ranges::all_of(items, [this](const auto* item) { return IsDone(*item); })) {
      inputs = walker->Observe(layer);
    }
    RETURN_IF_ERROR(StorePlain(items, inputs.get()));
    RETURN_IF_ERROR(StoreExperts(items, inputs.get()));
    inputs.reset();
    LayerWeights rounded = layer == config_.num_hidden_layers
                               ? weights_->mtp->layer
                               : weights_->layers[static_cast<size_t>(layer)];
    for (const QuantizeItem* item : items) {
      QuantizedMatrix* matrix = LayerMatrix(item->role, item->expert_idx, &rounded);
      if (matrix != nullptr) *matrix = Stored(*item);
    }
    walker->Advance(layer, rounded);
    return Status::Ok();
  }

  // Matrices with the same inputs follow each other, so that one factor serves them.
  Status StorePlain(const std::vector<const QuantizeItem*>& items, LayerInputs* inputs) {
    std::map<const InputMoments*, std::vector<const QuantizeItem*>> by_input;
    for (const QuantizeItem* item : items) {
      if (item->expert_idx >= 0 || item->role == WeightRole::kMtpProjection) continue;
      const bool is_rounded =
          item->target.kind == WeightTarget::Kind::kGrouped && !IsDone(*item) && inputs != nullptr;
      by_input[is_rounded ? inputs->Moments(item->role) : nullptr].push_back(item);
    }
    for (const auto& [moments, group] : by_input) {
      std::unique_ptr<FeedbackRounder> rounder;
      if (moments != nullptr) rounder = MakeRounder(*moments);
      for (const QuantizeItem* item : group) RETURN_IF_ERROR(Store(*item, rounder.get()));
    }
    return Status::Ok();
  }

  std::unique_ptr<FeedbackRounder> MakeRounder(const InputMoments& moments) {
    return std::make_unique<FeedbackRounder>(moments, options_.feedback, backend_, &pool_);
  }

  Status StoreExperts(const std::vector<const QuantizeItem*>& items, LayerInputs* inputs) {
    std::map<int, std::map<WeightRole, const QuantizeItem*>> experts;
    for (const QuantizeItem* item : items) {
      if (item->expert_idx >= 0) experts[item->expert_idx][item->role] = item;
    }
    for (const auto& [expert, matrices] : experts) {
      const QuantizeItem& gate = *matrices.at(WeightRole::kExpertGate);
      const QuantizeItem& up = *matrices.at(WeightRole::kExpertUp);
      const QuantizeItem& down = *matrices.at(WeightRole::kExpertDown);
      std::unique_ptr<FeedbackRounder> rounder;
      if (inputs != nullptr && !(IsDone(gate) && IsDone(up))) {
        rounder = MakeRounder(inputs->ExpertMoments(expert));
      }
      RETURN_IF_ERROR(Store(gate, rounder.get()));
      RETURN_IF_ERROR(Store(up, rounder.get()));
      if (inputs != nullptr && !IsDone(down)) {
        rounder = MakeRounder(inputs->ExpertDownMoments(expert, Stored(gate), Stored(up)));
      }
      RETURN_IF_ERROR(Store(down, rounder.get()));
    }
    return Status::Ok();
  }

  const QuantizeOptions& options_;
  const ModelConfig& config_;
  ModelWeights* weights_;
  const QuantizePlan& plan_;
  Backend* backend_;
  ResumableWriter* writer_;
  const QuantizeProgress& progress_;
  ThreadPool pool_;
  WeightRounding rounding_;
  std::map<int, std::vector<const QuantizeItem*>> layers_;
  int64_t done_ = 0, total_ = 0;
};

Json QuantizedConfig(const Checkpoint& checkpoint, const QuantizeOptions& options,
                     const QuantizePlan& plan) {
  Json config = checkpoint.config();
  Json quantization = {{"quant_method", "hadal"}, {"version", 1}};
  quantization.update(options.recipe.ToJson());
  quantization["bits_per_weight"] = plan.bits_per_weight();
  int64_t tokens = 0;
  for (const auto& window : options.calibration) tokens += static_cast<int64_t>(window.size());
  quantization["calibration_tokens"] = tokens;
  config["quantization_config"] = std::move(quantization);
  return config;
}

Status CheckCalibration(const QuantizeOptions& options, const ModelConfig& config) {
  for (const auto& window : options.calibration) {
    for (const TokenId id : window) {
      if (id.value >= 0 && id.value < config.vocab_size) continue;
      return Status::InvalidArgument(fmt::format("calibration: expected ids from 0 to {}, found {}",
                                                 config.vocab_size - 1, id.value));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<QuantizeReport> QuantizeCheckpoint(const QuantizeOptions& options,
                                          const QuantizeProgress& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::Open(options.source));
  const std::string config_path = checkpoint->config_path();
  ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::Parse(checkpoint->config(), config_path));
  if (config.has_grouped_weights) {
    return Status::InvalidArgument(fmt::format(
        "{}: quantization_config: expected wide or FP8 weights, found a quantised model",
        config_path));
  }
  if (checkpoint->notes().container == "gguf" ||
      config.packed_scheme.method != PackedMethod::kNone) {
    return Status::InvalidArgument(fmt::format(
        "{}: weights: expected the published layout, found {}, which `hadal convert` "
        "reads",
        config_path,
        checkpoint->notes().container == "gguf" ? "GGUF"
                                                : PackedMethodName(config.packed_scheme.method)));
  }
  RETURN_IF_ERROR(CheckCalibration(options, config));
  ASSIGN_OR_RETURN(ModelWeights weights, BindWeights(*checkpoint, config));
  ASSIGN_OR_RETURN(const QuantizePlan plan, PlanQuantization(*checkpoint, config, options.recipe));
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                   CreateBackend({.num_threads = options.num_threads,
                                  .kernels = options.kernels,
                                  .activations = ActivationFormat::kFloat32}));
  ASSIGN_OR_RETURN(ResumableWriter writer,
                   ResumableWriter::Open(options.folder, plan.specs,
                                         Fingerprint(options, *checkpoint), options.shard_bytes));
  QuantizeReport report = {.num_tensors = static_cast<int>(plan.specs.size()),
                           .num_files = writer.num_shards(),
                           .num_resumed = writer.num_done(),
                           .num_left_out = plan.num_left_out,
                           .num_bytes = writer.total_bytes(),
                           .bits_per_weight = plan.bits_per_weight()};
  for (const TensorInfo& tensor : checkpoint->tensors()) {
    report.source_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  const Status status =
      Quantizer(options, config, &weights, plan, backend.get(), &writer, progress).Run();
  if (!status.ok()) return status.Annotate(options.source);
  // Before the weights get their names, so that a folder is never without a part of them.
  RETURN_IF_ERROR(CopySmallFiles(checkpoint->folder(), options.folder));
  RETURN_IF_ERROR(WriteWholeFile(options.folder + "/config.json",
                                 QuantizedConfig(*checkpoint, options, plan).dump(2) + "\n"));
  RETURN_IF_ERROR(writer.Finish());
  return report;
}

}  // namespace hadal
