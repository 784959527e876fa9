// Runs steps in this process: build, forward, sample. Engine thread only.
#pragma once

#include <memory>

#include "runner/batch_builder.h"
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

 private:
  LocalRunner(LoadedModel loaded, ModelInfo info, const RunnerOptions& options, int max_logit_rows);
  Status CheckPlan(const BatchPlan& plan) const;

  LoadedModel loaded_;
  ModelInfo info_;
  int max_step_tokens_, max_step_sequences_, max_logit_rows_;
  BatchBuilder builder_;
  Sampler sampler_;
};

}  // namespace hadal
