// A runner without a model: the next token is a function of the tokens before it, as they stand in
// its own paged cache. So any wrong block, any row that was overwritten or computed in another
// form, any wrong position changes the text, and batching, chunks, shared prefixes, preemption and
// drafts must not.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "runner/model_runner.h"

namespace hadal {

struct FakeRunnerOptions {
  int vocab_size = 100;
  int max_context_tokens = 256;
  int block_tokens = 4;
  int num_cache_blocks = 64;
  int max_step_tokens = 512;
  int max_step_sequences = 64;
  std::vector<TokenId> eos_tokens = {};
  bool has_one_form = false;  // rows of generated tokens are computed as those of prompts are
  int num_drafts = 0;         // guesses per step
  int draft_error_percent = 30;
};

// What a token is chosen from.
struct FakePrefix {
  std::span<const TokenId> tokens;  // all tokens before the drawn one
  int num_prompt_tokens = 0;
  uint64_t digest = 0;  // of the rows in the cache
  const SamplingParams* sampling = nullptr;
};

class FakeRunner : public ModelRunner {
 public:
  explicit FakeRunner(const FakeRunnerOptions& options);

  const ModelInfo& info() const override { return info_; }
  void SetTokenLimit(int num_tokens) override { token_limit_ = num_tokens; }
  Status Execute(const BatchPlan& plan, StepResult* result) override;
  Status CopyBlocksOut(std::span<const BlockId> blocks, std::span<std::byte> bytes) override;
  Status CopyBlocksIn(std::span<const std::byte> bytes, std::span<const BlockId> blocks) override;

  // Replaces the choice of tokens; the default mixes the digest, and the seed when sampling.
  std::function<TokenId(const FakePrefix&)> choose;
  // Called first in every step; a failure fails the step.
  std::function<Status(const BatchPlan&)> before_step;
  // Steps for which this is true wait until Release(), or until they are broken off: whatever a
  // test does meanwhile comes in the middle of such a step, however slow the machine is.
  std::function<bool(const BatchPlan&)> holds;
  void WaitUntilHeld();
  // From now on no step is held.
  void Release();
  void Interrupt() override;
  // Sequences whose logits are not finite from now on.
  std::set<SequenceId> broken;

  int num_steps() const { return num_steps_; }
  int largest_step_tokens() const { return largest_step_tokens_; }
  int largest_step_sequences() const { return largest_step_sequences_; }
  int64_t num_computed_tokens() const { return num_computed_tokens_; }
  const std::set<SequenceId>& released() const { return released_; }

  // The output for `prompt` when nobody else is there: what every schedule must give. Ends with a
  // token of `stop_tokens` (left out) or after max_tokens.
  std::vector<TokenId> Expected(std::span<const TokenId> prompt, const SamplingParams& sampling,
                                int max_tokens, std::span<const TokenId> stop_tokens) const;

 private:
  struct Row {
    TokenId token;
    int position = -1;
    uint64_t digest = 0;
  };
  uint64_t Extended(uint64_t digest, TokenId token, int position, int num_prompt_tokens) const;
  TokenId Choose(const FakePrefix& prefix) const;
  void RunSlice(const BatchPlan& plan, const SequenceSlice& slice, StepResult* result);
  void ReadPrefix(const BatchPlan& plan, const SequenceSlice& slice, std::vector<TokenId>* tokens,
                  uint64_t* digest) const;
  SliceResult Draw(const SequenceSlice& slice, std::span<const TokenId> tokens,
                   std::span<const uint64_t> digests, StepResult* result) const;
  // Guesses for the tokens behind `next`.
  void Propose(const FakePrefix& prefix, TokenId next, SliceResult* drawn,
               StepResult* result) const;

  FakeRunnerOptions options_;
  ModelInfo info_;
  int token_limit_ = 0;
  std::vector<Row> rows_;           // [num_cache_blocks * block_tokens]
  std::atomic<int> num_steps_ = 0;  // tests read it while the engine runs
  int largest_step_tokens_ = 0, largest_step_sequences_ = 0;
  int64_t num_computed_tokens_ = 0;
  std::set<SequenceId> released_;

  Status Hold();
  std::mutex hold_mutex_;
  std::condition_variable hold_changed_;
  bool is_held_ = false, is_interrupted_ = false, is_open_ = false;
};

// A prompt of `length` tokens that depends on `seed`; ids from 10 on, below `vocab_size`.
std::vector<TokenId> FakePrompt(int length, uint64_t seed = 0, int vocab_size = 100);

}  // namespace hadal
