// The computing arm as the engine sees it: a plan in, a result out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "base/types.h"
#include "batch/batch_plan.h"
#include "batch/sampling_params.h"
#include "batch/speculation.h"
#include "batch/step_result.h"
#include "tensor/block_layout.h"

namespace hadal {

// How the latent cache is stored. kAuto: float32, or q16 where inputs of weights are rounded,
// whose rounding is far coarser.
enum class CacheFormat { kAuto, kF32, kBF16, kQ8, kQ16 };

// Where weights lie: mapped from their files, which costs no time at start; or copied into huge
// pages, which are read faster. kAuto: copied when they take less than half of the free memory.
enum class WeightMemory { kAuto, kMapped, kCopied };

// Which derivation of attention computes a token (specification, 3.3 and 3.7). kAuto: expanded for
// tokens of a prompt, absorbed for tokens that were generated, whoever shares the step. Expanding
// costs a step as much as its context is long, however few tokens it reads: worth it where prompts
// are read in chunks of hundreds, too dear where chunks are cut so that others need not wait.
enum class AttentionForm { kAuto, kAbsorbed, kExpanded };

// What products with INT8 and INT4 weights take: inputs rounded to bytes, or as they are, which is
// slow. kAuto: rounded; but as they are in an export of another program that is so small that speed
// is no matter.
enum class ActivationChoice { kAuto, kInt8, kFloat32 };

class StepProfile;

// What must be at hand for guessing ahead. N-grams always are.
struct DraftingOptions {
  int max_drafts = 0;    // for one sequence in a step, at most kMostDrafts; 0: nobody guesses
  bool has_mtp = false;  // the model's own module: a layer more of the cache
  std::string draft_model_path = {};  // empty: none
};

// Long chunks unfold a long context less often and meet more rows of each expert.
inline constexpr int kDefaultStepTokens = 1024;

struct RunnerOptions {
  std::string model_path = {};
  int num_threads = 0;       // 0: all usable cores
  std::string kernels = {};  // empty: the best usable set
  AttentionForm attention_form = AttentionForm::kAuto;
  WeightMemory weight_memory = WeightMemory::kAuto;
  CacheFormat cache_format = CacheFormat::kAuto;
  ActivationChoice activations = ActivationChoice::kAuto;
  // What wide weights are rounded to when they are loaded; empty: they stay as they are.
  std::optional<GroupShape> weight_format = {};
  // Where to note the time of each operation; null: nowhere.
  std::shared_ptr<StepProfile> profile = nullptr;
  DraftingOptions drafting = {};
  int max_step_tokens = kDefaultStepTokens;  // new tokens of a step, all sequences together
  int max_step_sequences = 64;
  int64_t cache_tokens =
      0;  // room of the latent cache; 0: as much as the model's context, within free memory
};

// What the deciding side and the API need to know of the model.
struct ModelInfo {
  std::string model_type;
  int vocab_size = 0;  // rows of the head
  int max_context_tokens =
      0;  // positions that exist: the model's, or fewer when the cache is smaller
  int block_tokens = 0;
  int num_cache_blocks = 0;
  int64_t block_bytes = 0;  // of one block's cache rows; 0: they cannot be copied
  // What cache rows depend on beside their tokens: weights, config, form of attention, kernel set.
  // Rows that were copied out may be copied into a runner with an equal key. Zero: into none.
  Hash128 rows_key = {};
  std::vector<TokenId> eos_tokens = {};  // of config.json and generation_config.json together
  TokenId bos_token;                     // -1: none
  SamplingParams default_sampling = {};  // of generation_config.json; greedy without one
  int max_drafts = 0;                    // of a sequence in a step
  bool drafts_with_mtp = false, drafts_with_model = false;
};

struct LayerImbalance {
  int layer_idx = 0;
  double ratio = 0.0;
};

class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual const ModelInfo& info() const = 0;

  // Ids at or above it have no token and are never drawn. Called once, after the tokenizer is
  // known; without a tokenizer every row of the head may be drawn.
  virtual void SetTokenLimit(int num_tokens) = 0;

  // Runs one step. `result` is overwritten; given back step after step, its memory is reused, so
  // that a step allocates nothing. An error means that nothing of the plan counts; a fault of one
  // sequence is in its SliceResult. REQUIRES: at most max_step_tokens tokens and max_step_sequences
  // slices; all new positions are covered by the blocks.
  virtual Status Execute(const BatchPlan& plan, StepResult* result) = 0;

  // Any thread. Asks a running Execute to break off. It then returns kCancelled and nothing of the
  // plan counts; one that is nearly through, or cannot, ends as usual. Without a running step it
  // may break off the next one.
  virtual void Interrupt() {}

  // Any thread. For each layer with experts: tokens of its busiest expert over the mean of its
  // experts, since the model was loaded. Empty where nobody counts.
  virtual std::vector<LayerImbalance> ExpertImbalance() const { return {}; }

  // Copies cache rows of whole blocks, bit by bit, out of the cache and into it; `bytes` holds them
  // block after block, in a form that only this model on this kernel set understands. Between
  // steps. REQUIRES: bytes.size() == blocks.size() * info().block_bytes.
  // kUnsupported where block_bytes is 0.
  virtual Status CopyBlocksOut(std::span<const BlockId>, std::span<std::byte>) {
    return Status::Unsupported("this runner does not copy cache rows");
  }
  virtual Status CopyBlocksIn(std::span<const std::byte>, std::span<const BlockId>) {
    return Status::Unsupported("this runner does not copy cache rows");
  }
};

// Loads the model. kNotFound, kCorrupt, kUnsupported: the model; kResourceExhausted: memory;
// kInvalidArgument: options.
Result<std::unique_ptr<ModelRunner>> CreateRunner(const RunnerOptions& options);

}  // namespace hadal
