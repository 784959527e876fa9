// Runs steps in this process: build, forward, sample. Engine thread only.
#pragma once

#include <atomic>
#include <memory>

#include "model/step_cost.h"
#include "runner/batch_builder.h"
#include "runner/drafter_set.h"
#include "runner/loaded_model.h"
#include "runner/model_runner.h"
#include "sample/sampler.h"

namespace hadal {

class LocalRunner final : public ModelRunner {
 public:
  // Errors as for CreateRunner.
  static Result<std::unique_ptr<LocalRunner>> Create(const RunnerOptions& options);

  const ModelInfo& info() const override { return info_; }
  void SetTokenLimit(int num_tokens) override { sampler_.SetTokenLimit(num_tokens); }
  Status Execute(const BatchPlan& plan, StepResult* result) override;
  void Interrupt() override { stop_.store(true, std::memory_order_relaxed); }
  std::vector<LayerImbalance> ExpertImbalance() const override;
  Status CopyBlocksOut(std::span<const BlockId> blocks, std::span<std::byte> bytes) override;
  Status CopyBlocksIn(std::span<const std::byte> bytes, std::span<const BlockId> blocks) override;

 private:
  LocalRunner(LoadedModel loaded, ModelInfo info, const RunnerOptions& options, int max_logit_rows);
  Status CheckPlan(const BatchPlan& plan) const;
  void Draw(const BatchPlan& plan, StepResult* result);
  StepTraffic CountTraffic(const BatchPlan& plan, int64_t num_expert_reads) const;

  LoadedModel loaded_;
  ModelInfo info_;
  int max_step_tokens_, max_step_sequences_, max_logit_rows_;
  BatchBuilder builder_;
  Sampler sampler_;
  DrafterSet drafters_;  // point to the model and the sampler
  ReadCost read_cost_;
  std::atomic<bool> stop_{false};  // asked for by Interrupt, taken by Execute
};

}  // namespace hadal
