#include "runner/batch_builder.h"

#include <algorithm>
#include <climits>

#include "base/check.h"
#include "model/latent_cache.h"

namespace hadal {

BatchBuilder::BatchBuilder(const ModelConfig& config, AttentionForm form, int max_step_tokens,
                           int max_step_sequences)
    : index_topk_(config.has_indexer() ? config.index_topk : INT_MAX), form_(form) {
  const auto tokens = static_cast<size_t>(max_step_tokens);
  tokens_.reserve(tokens);
  positions_.reserve(tokens);
  slots_.reserve(tokens);
  logit_rows_.reserve(tokens);
  // A slice is cut where the prompt ends and where selection begins.
  ranges_.reserve(3 * static_cast<size_t>(max_step_sequences));
}

ForwardBatch BatchBuilder::Build(const BatchPlan& plan) {
  tokens_.clear();
  positions_.clear();
  slots_.clear();
  logit_rows_.clear();
  ranges_.clear();
  has_sparse_range_ = false;
  // Ranges point into this array, so it must not move while they are added.
  block_ids_.resize(plan.block_ids.size());
  std::ranges::transform(plan.block_ids, block_ids_.begin(), [](BlockId id) { return id.value; });
  for (const SequenceSlice& slice : plan.slices) {
    AddRanges(slice);
    AddTokens(plan, slice);
  }
  return {.tokens = tokens_,
          .positions = positions_,
          .slots = slots_,
          .ranges = ranges_,
          .has_sparse_range = has_sparse_range_};
}

void BatchBuilder::AddTokens(const BatchPlan& plan, const SequenceSlice& slice) {
  HADAL_CHECK(static_cast<int64_t>(slice.num_blocks) * kBlockTokens >=
              static_cast<int64_t>(slice.num_cached) + slice.num_tokens);
  for (int i = 0; i < slice.num_tokens; ++i) {
    const int position = slice.num_cached + i;
    const int block = block_ids_[static_cast<size_t>(slice.block_begin + position / kBlockTokens)];
    tokens_.push_back(plan.tokens[static_cast<size_t>(slice.token_begin + i)].value);
    positions_.push_back(position);
    slots_.push_back(block * kBlockTokens + position % kBlockTokens);
  }
  if (!slice.wants_tokens) return;
  const int end = static_cast<int>(tokens_.size());
  for (int row = end - 1 - slice.num_drafts; row < end; ++row) logit_rows_.push_back(row);
}

void BatchBuilder::AddRanges(const SequenceSlice& slice) {
  const int begin = slice.num_cached, end = begin + slice.num_tokens;
  for (int position = begin; position < end;) {
    const bool is_prompt = position < slice.num_prompt_tokens;
    const bool is_sparse =
        position >= index_topk_;  // sees more than topk positions, itself included
    int range_end = end;
    if (is_prompt) range_end = std::min(range_end, slice.num_prompt_tokens);
    if (!is_sparse) range_end = std::min(range_end, index_topk_);
    // A selection is gathered per token, which only the absorbed form does well.
    const bool is_absorbed = form_ == AttentionForm::kAbsorbed ||
                             (form_ == AttentionForm::kAuto && (!is_prompt || is_sparse));
    ranges_.push_back({.token_begin = static_cast<int>(tokens_.size()) + position - begin,
                       .num_tokens = range_end - position,
                       .first_position = position,
                       .block_ids = std::span(block_ids_)
                                        .subspan(static_cast<size_t>(slice.block_begin),
                                                 static_cast<size_t>(slice.num_blocks)),
                       .is_absorbed = is_absorbed,
                       .is_sparse = is_sparse});
    has_sparse_range_ |= is_sparse;
    position = range_end;
  }
}

}  // namespace hadal
