// Draws the tokens of one slice of a plan, with or without drafts. Every position is drawn as if
// there were no drafts (the draw depends on logits, seed and position alone), and drafts are
// accepted while they equal what was drawn: so drafts change speed and never text. For one proposal
// per position this accepts exactly as often as rejection sampling (Leviathan et al., "Fast
// inference from transformers via speculative decoding", 2023, with a one-hot proposal).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "batch/batch_plan.h"
#include "batch/step_result.h"
#include "sample/sampler.h"

namespace hadal {

// Row i holds the logits behind the slice's token number num_tokens - 1 - num_drafts + i: the first
// row follows the last token that is certain, the others follow the drafts.
struct SliceLogits {
  float* data = nullptr;  // [num_drafts + 1, row_size]
  int64_t stride = 0;     // floats from row to row
  int row_size = 0;       // rows of the head

  std::span<float> row(int i) const { return {data + i * stride, static_cast<size_t>(row_size)}; }
};

// Appends the slice's result and its tokens to `result`: none while the prompt is partly read (then
// `logits` is not looked at), else the accepted drafts and one token more. Logits that are not
// finite give an error and no tokens.
void SampleSlice(const BatchPlan& plan, const SequenceSlice& slice, const SliceLogits& logits,
                 Sampler* sampler, StepResult* result);

// The same for any way to draw: draw(row, what the draw depends on, out) draws the token of a row,
// false when its logits are not finite.
using DrawRow = std::function<bool(int row, const SamplerInput& input, SampledToken* token)>;
void SampleSliceBy(const BatchPlan& plan, const SequenceSlice& slice, const SliceLogits& logits,
                   const DrawRow& draw, StepResult* result);

}  // namespace hadal
