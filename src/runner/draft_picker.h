// From a drafter's logits to a guess.
#pragma once

#include <span>
#include <vector>

#include "batch/sampling_params.h"
#include "runner/drafter.h"
#include "sample/sampler.h"

namespace hadal {

// The guess is drawn from the drafter's logits as the token will be drawn from the model's: with
// the same filters, penalties, seed and position. Where the logits agree the guess then is right
// however hot the temperature; the likeliest token would be right only as often as it is likely.
// For the classic rule the draw is an independent one, and its distribution is kept.
class DraftPicker {
 public:
  explicit DraftPicker(Sampler* sampler) : sampler_(sampler) {}

  // Appends the guess for the token behind the task's text and its guesses so far. `logits` are
  // changed in place. False when they are not finite: then nothing is appended.
  bool Pick(const DraftTask& task, std::span<float> logits);

 private:
  Sampler* const sampler_;
  SamplingParams params_;                  // of the task, but for logprobs
  std::vector<TokenLogprob> no_logprobs_;  // stays empty
};

}  // namespace hadal
