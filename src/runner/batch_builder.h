// BatchPlan -> ForwardBatch: the only place that computes positions, slots and the form of
// attention.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "batch/batch_plan.h"
#include "model/forward_batch.h"
#include "model/model_config.h"
#include "runner/model_runner.h"

namespace hadal {

class BatchBuilder {
 public:
  BatchBuilder(const ModelConfig& config, AttentionForm form, int max_step_tokens,
               int max_step_sequences);

  // The views are valid until the next call. REQUIRES: the plan keeps to the limits and its blocks
  // cover its positions.
  ForwardBatch Build(const BatchPlan& plan);

  // Rows whose logits the step needs, slice after slice: of each slice that wants tokens the last 1
  // + num_drafts.
  std::span<const int32_t> logit_rows() const { return logit_rows_; }

 private:
  void AddTokens(const BatchPlan& plan, const SequenceSlice& slice);
  void AddRanges(const SequenceSlice& slice);

  int index_topk_;  // INT_MAX without an indexer: no position is sparse
  AttentionForm form_;
  std::vector<int32_t> tokens_, positions_, slots_, block_ids_, logit_rows_;
  std::vector<AttentionRange> ranges_;
  bool has_sparse_range_ = false;
};

}  // namespace hadal
