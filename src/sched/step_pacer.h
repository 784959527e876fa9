// How much of a prompt a step may read so that nobody who shares the step waits too long. Learns
// from measured step times; decides nothing else. Engine thread only.
//
// The time of a step is modelled as base + cost(work): base is what a step costs that only decodes,
// work counts prompt tokens, each weighted by how deep in its context it sits. `cost` is a table
// over powers of two, between which it is linear. Two properties hold for any machine and repair
// the table after a disturbed measurement: cost grows with work, and twice the work costs at most
// twice as much (weights are read once for all rows of a step).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hadal {

struct StepPacerOptions {
  // Wanted of a step in which someone decodes; 0: no limit.
  int64_t max_step_us = 0;
  // Wanted of a step that only reads prompts, so that cancelling and arriving do not wait for long;
  // 0: no limit.
  int64_t max_prompt_step_us = 0;
};

// What one step did.
struct StepLoad {
  int num_decoding = 0;    // sequences beyond their prompt
  double prompt_work = 0;  // sum of PromptWork
};

// Prompt tokens at positions [position, position + num_tokens), in units of tokens at the start of
// a context. Attention of a token at position 4096 costs about as much as the rest of the model
// does: in the absorbed form V2-Lite 0.94 MFLOP per position of 4.8 GFLOP, V3 17 MFLOP of 74 GFLOP.
double PromptWork(int position, int num_tokens);

// The most tokens from `position` on that are no more than `work`.
int PromptTokens(int position, double work);

class StepPacer {
 public:
  explicit StepPacer(const StepPacerOptions& options) : options_(options) {}

  // The prompt work that the next step should take at most beside `num_decoding` sequences. Never
  // below kMinWork: however slow the machine, prompts move on.
  double MaxPromptWork(int num_decoding) const;

  // Takes in how long a step took.
  void Note(const StepLoad& load, int64_t elapsed_us);

  static constexpr double kMinWork = 16;
  static constexpr double kNoLimit = 1e18;

 private:
  static constexpr int kNumCosts = 18;  // of 1, 2, 4 ... 131072 units

  double BaseUs(int num_decoding) const { return num_decoding > 0 ? base_us_ : 0; }
  double CostUs(int i) const { return costs_us_[static_cast<std::size_t>(i)]; }
  void NoteCost(double work, double us);

  const StepPacerOptions options_;
  double base_us_ = 0;                        // of steps that only decode
  std::array<double, kNumCosts> costs_us_{};  // of 2^i units, valid once has_costs_
  double largest_seen_ = 0;                   // work; far above it nothing is known
  bool has_base_ = false, has_costs_ = false;
};

}  // namespace hadal
