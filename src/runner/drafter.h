// Guessing the next tokens of sequences, behind one interface: n-grams of the sequence's own text,
// the model's own extra layer, a second model. A guess never changes an answer, so a drafter may
// be wrong, but it must be quick. docs/speculation.md.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "batch/batch_plan.h"
#include "sample/classic_verifier.h"

namespace hadal {

// One sequence of a step that was computed and drawn.
struct DraftTask {
  const SequenceSlice* slice = nullptr;
  // Its tokens up to the last that is certain: those of the cache, the new ones without rejected
  // drafts, and, unless its prompt is partly read, the one that was drawn behind them.
  std::span<const TokenId> text;
  int first_row = 0;   // of its new tokens among the rows of the step
  int num_kept = 0;    // new tokens without rejected drafts
  int max_drafts = 0;  // that are wanted; 0: the drafter only keeps up with the text
  std::vector<TokenId>* drafts = nullptr;  // out, empty: guesses for the tokens behind the text
  // Out, empty: what each guess was drawn from, for the classic rule; null: nobody asks.
  std::vector<DraftDistribution>* distributions = nullptr;
};

// Engine thread only.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Takes in the step and guesses. Fewer guesses than wanted are no error; after an error there are
  // none, and the step counts all the same. REQUIRES: `plan` is the one that the slices are of, and
  // the model's activations are as the step left them.
  virtual Status Propose(const BatchPlan& plan, std::span<const DraftTask> tasks) = 0;

  // The sequence has ended.
  virtual void Forget(SequenceId) {}
};

}  // namespace hadal
