#include "runner/loaded_model.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/profiling_backend.h"
#include "base/log.h"
#include "model/cache_size.h"
#include "model/widest_input.h"
#include "sys/machine.h"

namespace hadal {
namespace {

// Without a size in the options: room for a few whole contexts, but no more than a quarter of the
// free memory. The system gives pages only when they are written, so room that is not used costs
// nothing.
constexpr int kDefaultContexts = 4;

Result<int> NumCacheBlocks(const RunnerOptions& options, const ModelConfig& config,
                           int64_t bytes_per_token) {
  if (options.cache_tokens < 0) {
    return Status::InvalidArgument(
        fmt::format("cache tokens: expected 0 or more, found {}", options.cache_tokens));
  }
  int64_t tokens = options.cache_tokens;
  if (tokens == 0) {
    tokens = int64_t{kDefaultContexts} * config.max_position_embeddings;
    if (const int64_t free_bytes = AvailableMemoryBytes(); free_bytes > 0) {
      tokens = std::min(tokens, free_bytes / 4 / bytes_per_token);
    }
  }
  // Slots are 32-bit.
  const int64_t blocks = CeilDiv<int64_t>(std::max<int64_t>(tokens, 1), kBlockTokens);
  return static_cast<int>(std::min<int64_t>(blocks, INT32_MAX / kBlockTokens));
}

Status CheckLimits(const RunnerOptions& options) {
  if (options.max_step_tokens < 1 || options.max_step_tokens > 65536) {
    return Status::InvalidArgument(
        fmt::format("tokens of a step: expected 1 to 65536, found {}", options.max_step_tokens));
  }
  if (options.max_step_sequences < 1 || options.max_step_sequences > 4096) {
    return Status::InvalidArgument(fmt::format("sequences of a step: expected 1 to 4096, found {}",
                                               options.max_step_sequences));
  }
  return Status::Ok();
}

int64_t MaxResidentBytes(WeightMemory memory) {
  switch (memory) {
    case WeightMemory::kMapped:
      return -1;
    case WeightMemory::kCopied:
      return INT64_MAX;
    case WeightMemory::kAuto:
      break;
  }
  return AvailableMemoryBytes() / 2;
}

// A file in another program's container.
bool IsForeign(const Checkpoint& checkpoint, const ModelConfig& config) {
  return checkpoint.notes().container == "gguf" ||
         config.packed_scheme.method != PackedMethod::kNone;
}

}  // namespace

CacheType TypeOfCache(const RunnerOptions& options, const Checkpoint& checkpoint,
                      const ModelConfig& config) {
  switch (options.cache_format) {
    case CacheFormat::kF32:
      return CacheType::kF32;
    case CacheFormat::kBF16:
      return CacheType::kBF16;
    case CacheFormat::kQ8:
      return CacheType::kQ8;
    case CacheFormat::kQ16:
      return CacheType::kQ16;
    case CacheFormat::kAuto:
      break;
  }
  const bool rounds_inputs =
      config.has_grouped_weights ||
      (IsForeign(checkpoint, config) && !KeepsFloatActivations(options, checkpoint, config));
  return rounds_inputs ? CacheType::kQ16 : CacheType::kF32;
}

bool KeepsFloatActivations(const RunnerOptions& options, const Checkpoint& checkpoint,
                           const ModelConfig& config) {
  if (options.activations != ActivationChoice::kAuto) {
    return options.activations == ActivationChoice::kFloat32;
  }
  if (!IsForeign(checkpoint, config)) return false;
  constexpr size_t kSmallBytes = size_t{64} << 20;
  size_t bytes = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) bytes += tensor.bytes.size();
  return bytes < kSmallBytes;
}

Result<LoadedModel> LoadedModel::Load(const RunnerOptions& options, const LoadedModelNeeds& needs) {
  RETURN_IF_ERROR(CheckLimits(options));
  LoadedModel loaded;
  ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> checkpoint, Checkpoint::Open(options.model_path));
  ASSIGN_OR_RETURN(const ModelConfig parsed,
                   ModelConfig::Parse(checkpoint->config(), checkpoint->config_path()));
  const ActivationFormat activations = KeepsFloatActivations(options, *checkpoint, parsed)
                                           ? ActivationFormat::kFloat32
                                           : ActivationFormat::kInt8;
  ASSIGN_OR_RETURN(loaded.backend, CreateBackend({.num_threads = options.num_threads,
                                                  .kernels = options.kernels,
                                                  .activations = activations}));
  if (options.profile != nullptr) {
    loaded.backend = WithProfile(std::move(loaded.backend), options.profile.get());
  }
  ASSIGN_OR_RETURN(loaded.model,
                   Model::Load(std::move(checkpoint),
                               {.max_resident_bytes = MaxResidentBytes(options.weight_memory),
                                .weight_format = options.weight_format,
                                .rounds_block_inputs = activations == ActivationFormat::kInt8},
                               loaded.backend.get()));
  const ModelConfig& config = loaded.model->config();
  const int num_layers = needs.runs_mtp ? config.num_stored_layers() : config.num_hidden_layers;
  loaded.cache_type = TypeOfCache(options, loaded.model->checkpoint(), config);
  const int64_t bytes_per_token = CacheBytesPerToken(config, num_layers, loaded.cache_type);
  ASSIGN_OR_RETURN(const int num_blocks, NumCacheBlocks(options, config, bytes_per_token));
  ASSIGN_OR_RETURN(loaded.cache, LatentCache::Create(config, num_layers, num_blocks,
                                                     loaded.cache_type, loaded.backend.get()));
  ASSIGN_OR_RETURN(loaded.activations,
                   Activations::Create(config, options.max_step_tokens, needs.max_logit_rows,
                                       loaded.backend.get()));
  loaded.max_context_tokens = static_cast<int>(std::min<int64_t>(
      config.max_position_embeddings, static_cast<int64_t>(num_blocks) * kBlockTokens));
  RETURN_IF_ERROR(loaded.backend->Prepare({.max_step_tokens = options.max_step_tokens,
                                           .max_context_tokens = loaded.max_context_tokens,
                                           .shape = AttentionShape(config),
                                           .hidden_size = config.hidden_size,
                                           .num_experts_per_tok = config.num_experts_per_tok,
                                           .n_routed_experts = config.n_routed_experts,
                                           .moe_intermediate_size = config.moe_intermediate_size,
                                           .index_n_heads = config.index_n_heads,
                                           .widest_input = WidestInput(config)}));
  Log(LogLevel::kInfo,
      "model {}: {}, {} layers, kernels {}, {} threads, cache of {} tokens ({:.2f} GB)",
      options.model_path, config.model_type, config.num_hidden_layers,
      loaded.backend->kernels_name(), loaded.backend->num_threads(),
      int64_t{num_blocks} * kBlockTokens,
      static_cast<double>(bytes_per_token) * num_blocks * kBlockTokens / 1e9);
  return loaded;
}

}  // namespace hadal
