// The tokens of the sequences whose next ones are guessed, as plans and draws have told them.
// Engine thread only.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "batch/batch_plan.h"
#include "batch/step_result.h"

namespace hadal {

class SequenceTexts {
 public:
  // Takes in a slice that was computed and drawn, and returns the sequence's tokens up to the last
  // that is certain (DraftTask::text); valid until its next call or Forget. REQUIRES: what lies
  // before the slice was told before, or is in its history.
  std::span<const TokenId> Extend(const BatchPlan& plan, const SequenceSlice& slice,
                                  const SliceResult& drawn, const StepResult& result);

  void Forget(SequenceId id) { texts_.erase(id); }

 private:
  std::unordered_map<SequenceId, std::vector<TokenId>> texts_;
};

// New tokens of a slice that are in its text: all but the rejected drafts.
int NumKept(const SequenceSlice& slice, const SliceResult& drawn);

}  // namespace hadal
