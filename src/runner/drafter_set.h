// The drafters of a runner: hands each the sequences that asked for it, and keeps what they share,
// the texts and what guesses were drawn from. Engine thread only.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "batch/batch_plan.h"
#include "batch/speculation.h"
#include "batch/step_result.h"
#include "runner/drafter.h"
#include "runner/loaded_model.h"
#include "runner/model_runner.h"
#include "runner/sequence_texts.h"
#include "sample/sampler.h"

namespace hadal {

class DrafterSet {
 public:
  // What the options ask for; `loaded` and `sampler` must outlive the set. kUnsupported: the model
  // has no MTP module; others as ModelDrafter::Load.
  static Result<DrafterSet> Create(const RunnerOptions& options, LoadedModel* loaded,
                                   Sampler* sampler);

  bool has(DrafterKind kind) const { return drafters_[static_cast<size_t>(kind)] != nullptr; }

  // Guesses for the slices that have use for it, after their draws: fills StepResult::drafts and
  // drafting_us. A drafter that fails says so in the log and guesses nothing.
  void Propose(const BatchPlan& plan, StepResult* result);

  // What the drafts of the slice were drawn from, for the classic rule.
  std::span<const DraftDistribution> DistributionsOf(SequenceId id) const;

  void Forget(std::span<const SequenceId> ended);

 private:
  void AddTasks(const BatchPlan& plan, const StepResult& result);
  void KeepDrafts(StepResult* result);

  std::array<std::unique_ptr<Drafter>, kNumDrafterKinds> drafters_;
  SequenceTexts texts_;
  std::unordered_map<SequenceId, std::vector<DraftDistribution>> distributions_;
  // Of the step; kept between steps.
  std::array<std::vector<DraftTask>, kNumDrafterKinds> tasks_;
  std::vector<std::vector<TokenId>> drafts_;  // by slice
};

}  // namespace hadal
