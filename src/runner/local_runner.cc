#include "runner/local_runner.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "runner/generation_config.h"
#include "runner/rows_key.h"
#include "sample/draft_verifier.h"

namespace hadal {
namespace {

// Drafts that a plan may hold although nobody guesses here: benchmarks bring their own.
constexpr int kForeignDrafts = 7;

// Rows of logits that a step may ask for: every sequence with all its drafts.
int MaxLogitRows(const RunnerOptions& options) {
  const int max_drafts = std::max(kForeignDrafts, options.drafting.max_drafts);
  return std::min(options.max_step_tokens, options.max_step_sequences * (1 + max_drafts));
}

Status CheckDrafting(const DraftingOptions& drafting) {
  if (drafting.max_drafts >= 0 && drafting.max_drafts <= kMostDrafts) return Status::Ok();
  return Status::InvalidArgument(fmt::format("guesses in a step: expected 0 to {}, found {}",
                                             kMostDrafts, drafting.max_drafts));
}

}  // namespace

Result<std::unique_ptr<LocalRunner>> LocalRunner::Create(const RunnerOptions& options) {
  RETURN_IF_ERROR(CheckDrafting(options.drafting));
  const int max_logit_rows = MaxLogitRows(options);
  ASSIGN_OR_RETURN(LoadedModel loaded,
                   LoadedModel::Load(options, {.max_logit_rows = max_logit_rows,
                                               .runs_mtp = options.drafting.has_mtp}));
  const ModelConfig& config = loaded.model->config();
  const Checkpoint& checkpoint = loaded.model->checkpoint();
  ModelInfo info = {.model_type = config.model_type,
                    .vocab_size = config.vocab_size,
                    .max_context_tokens = loaded.max_context_tokens,
                    .block_tokens = kBlockTokens,
                    .num_cache_blocks = loaded.cache.num_blocks(),
                    .block_bytes = loaded.cache.block_bytes(),
                    .rows_key = RowsKey(checkpoint, options, loaded.backend->kernels_name(),
                                        loaded.cache.block_bytes()),
                    .bos_token = {config.bos_token_id},
                    .max_drafts = options.drafting.max_drafts,
                    .drafts_with_mtp = options.drafting.has_mtp,
                    .drafts_with_model = !options.drafting.draft_model_path.empty()};
  for (const int id : config.eos_token_ids) info.eos_tokens.push_back({id});
  RETURN_IF_ERROR(ReadGenerationConfig(checkpoint.generation_config(),
                                       checkpoint.folder() + "/generation_config.json", &info));
  std::unique_ptr<LocalRunner> runner(
      new LocalRunner(std::move(loaded), std::move(info), options, max_logit_rows));
  ASSIGN_OR_RETURN(runner->drafters_,
                   DrafterSet::Create(options, &runner->loaded_, &runner->sampler_));
  return runner;
}

LocalRunner::LocalRunner(LoadedModel loaded, ModelInfo info, const RunnerOptions& options,
                         int max_logit_rows)
    : loaded_(std::move(loaded)),
      info_(std::move(info)),
      max_step_tokens_(options.max_step_tokens),
      max_step_sequences_(options.max_step_sequences),
      max_logit_rows_(max_logit_rows),
      builder_(loaded_.model->config(), options.attention_form, options.max_step_tokens,
               options.max_step_sequences),
      sampler_(loaded_.model->config().vocab_size),
      read_cost_(
          CountReadCost(loaded_.model->weights(),
                        CacheRowBytes(loaded_.cache_type, loaded_.model->config().latent_dim()))) {}

Status LocalRunner::CheckPlan(const BatchPlan& plan) const {
  int logit_rows = 0;
  for (const SequenceSlice& slice : plan.slices) {
    if (slice.wants_tokens) logit_rows += 1 + slice.num_drafts;
  }
  if (static_cast<int>(plan.tokens.size()) <= max_step_tokens_ &&
      static_cast<int>(plan.slices.size()) <= max_step_sequences_ &&
      logit_rows <= max_logit_rows_) {
    return Status::Ok();
  }
  return Status::Internal(fmt::format(
      "step: expected at most {} tokens, {} sequences and {} rows of logits, found {}, {} and {}",
      max_step_tokens_, max_step_sequences_, max_logit_rows_, plan.tokens.size(),
      plan.slices.size(), logit_rows));
}

Status LocalRunner::Execute(const BatchPlan& plan, StepResult* result) {
  result->Clear();
  drafters_.Forget(plan.released);
  if (plan.slices.empty()) return Status::Ok();
  RETURN_IF_ERROR(CheckPlan(plan));
  ForwardBatch batch = builder_.Build(plan);
  batch.stop = &stop_;
  const int64_t reads_before = loaded_.model->expert_load().num_reads();
  if (!loaded_.model->Forward(batch, &loaded_.cache, &loaded_.activations)) {
    RETURN_IF_ERROR(loaded_.backend->Synchronize());
    stop_.store(false, std::memory_order_relaxed);
    return Status::Cancelled("the step was broken off");
  }
  result->traffic = CountTraffic(plan, loaded_.model->expert_load().num_reads() - reads_before);
  loaded_.model->ComputeLogits(builder_.logit_rows(), &loaded_.activations);
  RETURN_IF_ERROR(loaded_.backend->Synchronize());

  Draw(plan, result);
  if (info_.max_drafts > 0) drafters_.Propose(plan, result);
  return Status::Ok();
}

void LocalRunner::Draw(const BatchPlan& plan, StepResult* result) {
  const FloatMatrix logits = loaded_.activations.logits;
  int row = 0;
  for (const SequenceSlice& slice : plan.slices) {
    const SliceLogits slice_logits = {.data = logits.data + row * logits.stride,
                                      .stride = logits.stride,
                                      .row_size = logits.cols};
    if (slice.speculation.acceptance == DraftAcceptance::kClassic && slice.num_drafts > 0) {
      SampleSliceClassic(plan, slice, slice_logits, drafters_.DistributionsOf(slice.id), &sampler_,
                         result);
    } else {
      SampleSlice(plan, slice, slice_logits, &sampler_, result);
    }
    if (slice.wants_tokens) row += 1 + slice.num_drafts;
  }
}

std::vector<LayerImbalance> LocalRunner::ExpertImbalance() const {
  const ExpertLoad& load = loaded_.model->expert_load();
  std::vector<LayerImbalance> layers;
  for (int layer = 0; layer < load.num_layers(); ++layer) {
    const double ratio = load.Imbalance(layer);
    if (ratio > 0.0) layers.push_back({.layer_idx = layer, .ratio = ratio});
  }
  return layers;
}

StepTraffic LocalRunner::CountTraffic(const BatchPlan& plan, int64_t num_expert_reads) const {
  int64_t num_rows = 0;
  for (const SequenceSlice& slice : plan.slices) num_rows += slice.num_cached + slice.num_tokens;
  return {.weight_bytes = read_cost_.step_bytes + num_expert_reads * read_cost_.expert_bytes,
          .cache_bytes = num_rows * read_cost_.cache_row_bytes};
}

Status LocalRunner::CopyBlocksOut(std::span<const BlockId> blocks, std::span<std::byte> bytes) {
  const size_t size = static_cast<size_t>(info_.block_bytes);
  HADAL_CHECK(bytes.size() == blocks.size() * size);
  for (size_t i = 0; i < blocks.size(); ++i)
    loaded_.cache.CopyBlockOut(blocks[i], bytes.subspan(i * size, size));
  return Status::Ok();
}

Status LocalRunner::CopyBlocksIn(std::span<const std::byte> bytes,
                                 std::span<const BlockId> blocks) {
  const size_t size = static_cast<size_t>(info_.block_bytes);
  HADAL_CHECK(bytes.size() == blocks.size() * size);
  for (size_t i = 0; i < blocks.size(); ++i)
    loaded_.cache.CopyBlockIn(bytes.subspan(i * size, size), blocks[i]);
  return Status::Ok();
}

Result<std::unique_ptr<ModelRunner>> CreateRunner(const RunnerOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<LocalRunner> runner, LocalRunner::Create(options));
  return std::unique_ptr<ModelRunner>(std::move(runner));
}

}  // namespace hadal
