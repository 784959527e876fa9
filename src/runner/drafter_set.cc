#include "runner/drafter_set.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "runner/model_drafter.h"
#include "runner/mtp_drafter.h"
#include "runner/ngram_drafter.h"

namespace hadal {

Result<DrafterSet> DrafterSet::Create(const RunnerOptions& options, LoadedModel* loaded,
                                      Sampler* sampler) {
  DrafterSet set;
  const DraftingOptions& drafting = options.drafting;
  if (drafting.max_drafts == 0) return set;
  const auto add = [&set](DrafterKind kind, std::unique_ptr<Drafter> drafter) {
    set.drafters_[static_cast<size_t>(kind)] = std::move(drafter);
  };
  add(DrafterKind::kNgram, std::make_unique<NgramDrafter>());
  if (drafting.has_mtp) {
    if (!loaded->model->has_mtp()) {
      return Status::Unsupported(
          fmt::format("{}: expected a multi-token-prediction module to guess with, found none",
                      options.model_path));
    }
    add(DrafterKind::kMtp, std::make_unique<MtpDrafter>(loaded, options, sampler));
  }
  if (!drafting.draft_model_path.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<Drafter> drafter,
                     ModelDrafter::Load(options, loaded->model->config().vocab_size,
                                        loaded->cache.num_blocks(), sampler));
    add(DrafterKind::kModel, std::move(drafter));
  }
  return set;
}

void DrafterSet::AddTasks(const BatchPlan& plan, const StepResult& result) {
  for (std::vector<DraftTask>& tasks : tasks_) tasks.clear();
  if (drafts_.size() < plan.slices.size()) drafts_.resize(plan.slices.size());
  int first_row = 0;
  for (size_t i = 0; i < plan.slices.size(); ++i) {
    const SequenceSlice& slice = plan.slices[i];
    const SliceResult& drawn = result.slices[i];
    const int row = std::exchange(first_row, first_row + slice.num_tokens);
    drafts_[i].clear();
    if (!slice.speculation.is_on() || !has(slice.speculation.drafter)) continue;
    if (drawn.error != SliceError::kNone) continue;
    DraftTask task{.slice = &slice,
                   .text = texts_.Extend(plan, slice, drawn, result),
                   .first_row = row,
                   .num_kept = NumKept(slice, drawn),
                   .max_drafts = slice.max_proposals,
                   .drafts = &drafts_[i]};
    if (slice.speculation.acceptance == DraftAcceptance::kClassic) {
      task.distributions = &distributions_[slice.id];
      task.distributions->clear();
    }
    tasks_[static_cast<size_t>(slice.speculation.drafter)].push_back(task);
  }
}

void DrafterSet::KeepDrafts(StepResult* result) {
  for (size_t i = 0; i < result->slices.size(); ++i) {
    SliceResult& slice = result->slices[i];
    slice.draft_begin = static_cast<int>(result->drafts.size());
    slice.num_drafts = static_cast<int>(drafts_[i].size());
    result->drafts.insert(result->drafts.end(), drafts_[i].begin(), drafts_[i].end());
  }
}

void DrafterSet::Propose(const BatchPlan& plan, StepResult* result) {
  const auto start = std::chrono::steady_clock::now();
  AddTasks(plan, *result);
  for (size_t kind = 0; kind < drafters_.size(); ++kind) {
    if (tasks_[kind].empty()) continue;
    const Status status = drafters_[kind]->Propose(plan, tasks_[kind]);
    if (status.ok()) continue;
    Log(LogLevel::kWarning, "drafter {}: {}", DrafterName(static_cast<DrafterKind>(kind)),
        status.message());
    for (const DraftTask& task : tasks_[kind]) task.drafts->clear();
  }
  KeepDrafts(result);
  result->drafting_us = std::chrono::duration_cast<std::chrono::microseconds>(
                            std::chrono::steady_clock::now() - start)
                            .count();
}

std::span<const DraftDistribution> DrafterSet::DistributionsOf(SequenceId id) const {
  const auto found = distributions_.find(id);
  if (found == distributions_.end()) return {};
  return found->second;
}

void DrafterSet::Forget(std::span<const SequenceId> ended) {
  for (const SequenceId id : ended) {
    texts_.Forget(id);
    distributions_.erase(id);
    for (const std::unique_ptr<Drafter>& drafter : drafters_)
      if (drafter) drafter->Forget(id);
  }
}

}  // namespace hadal
