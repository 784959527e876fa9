// Guesses with a second, smaller model of the same vocabulary, which reads the text beside the
// model and runs ahead of it.
//
// Its cache has as many blocks as the model's, and a sequence's rows lie in the slots that the
// sequence has in the model's cache: so it needs no bookkeeping of blocks of its own, and prefixes
// that sequences share are shared here too. What a block holds is remembered by a key of the text;
// rows that are missing, because somebody without a drafter filled the prefix or the rows were
// moved meanwhile, are computed when they are needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runner/batch_builder.h"
#include "runner/draft_picker.h"
#include "runner/drafter.h"
#include "runner/loaded_model.h"

namespace hadal {

class ModelDrafter final : public Drafter {
 public:
  // Loads options.drafting.draft_model_path for a model with `vocab_size` rows of its head and
  // `num_blocks` blocks of its cache. Errors as CreateRunner; kInvalidArgument when the second
  // model's head has other rows.
  static Result<std::unique_ptr<ModelDrafter>> Load(const RunnerOptions& options, int vocab_size,
                                                    int num_blocks, Sampler* sampler);

  Status Propose(const BatchPlan& plan, std::span<const DraftTask> tasks) override;
  void Forget(SequenceId id) override { sequences_.erase(id); }

 private:
  struct SequenceState {
    std::vector<uint64_t> keys = {0};  // [n]: of the first n tokens
    // Rows that were computed for guesses, behind the certain ones: of `guessed`, from
    // `guessed_begin` on.
    int guessed_begin = 0;
    std::vector<TokenId> guessed;
  };
  // The certain rows of a block.
  struct BlockContent {
    uint64_t key = 0;  // of all tokens up to the last row
    int num_rows = 0;
  };
  struct Chain {
    const DraftTask* task = nullptr;
    int row = 0;       // of the draft model's last state
    int position = 0;  // of that state
  };

  ModelDrafter(LoadedModel loaded, const RunnerOptions& options, Sampler* sampler);
  BlockContent& ContentAt(const BatchPlan& plan, const SequenceSlice& slice, int block_idx);
  int CountRows(const BatchPlan& plan, const DraftTask& task, SequenceState* state);
  void NoteRows(const BatchPlan& plan, const SequenceSlice& slice, const SequenceState& state,
                int begin, int end);
  void AddTokens(const DraftTask& task, int begin, std::span<const TokenId> tokens);
  void AddMissing(const BatchPlan& plan, const DraftTask& task);
  Status ForwardAll(const BatchPlan& plan);
  Status PickAll();

  LoadedModel loaded_;
  const int max_tokens_;  // of one forward pass
  BatchBuilder builder_;
  DraftPicker picker_;
  std::vector<BlockContent> blocks_;
  std::unordered_map<SequenceId, SequenceState> sequences_;
  // Of the step; kept between steps.
  BatchPlan feed_;
  std::vector<int32_t> rows_;
  std::vector<Chain> chains_;
};

}  // namespace hadal
