// Guesses with the model's own multi-token-prediction module: one layer more, run on the step's
// final hidden states. DeepSeek-V3 report, 2.2; specification, 5.
//
// The module's rows lie in a layer of their own of the model's cache, in the slots of the
// sequence: the row of position i joins the hidden state of token i with the embedding of token
// i + 1, so each step that computes a position can fill its row as well, and rows of prompts are
// shared, saved and brought back with all others. The last row of a shared block may have been
// filled for another next token; that costs a guess, never a text.
#pragma once

#include <cstdint>
#include <vector>

#include "runner/batch_builder.h"
#include "runner/draft_picker.h"
#include "runner/drafter.h"
#include "runner/loaded_model.h"

namespace hadal {

class MtpDrafter final : public Drafter {
 public:
  // `loaded` and `sampler` must outlive the drafter. REQUIRES: the model has the module, and its
  // cache a layer for it.
  MtpDrafter(LoadedModel* loaded, const RunnerOptions& options, Sampler* sampler);

  // Fills the module's rows of the tasks that guess or read their prompt, and guesses. Guesses
  // behind the first come from the module's own states and guesses (specification, 5.3); their rows
  // are overwritten with true ones once the tokens are certain. A chain ends where the sequence's
  // blocks end.
  Status Propose(const BatchPlan& plan, std::span<const DraftTask> tasks) override;

 private:
  struct Chain {
    const DraftTask* task = nullptr;
    int row = 0;       // of the module's last state
    int position = 0;  // of that state
  };

  void AddPairs(const DraftTask& task);
  void AddLink(const Chain& chain);
  void ForwardPairs(const BatchPlan& plan);
  Status PickAll();

  LoadedModel* const loaded_;
  BatchBuilder builder_;
  DraftPicker picker_;
  // Of the step; kept between steps.
  BatchPlan pairs_;
  std::vector<int32_t> rows_;  // of hidden states that enter
  std::vector<Chain> chains_;
};

}  // namespace hadal
