// Draws the tokens of a slice by the classic rule: a draft that was drawn from a distribution q of
// its own is accepted with probability min(1, p / q), else the token is drawn from what p has more
// than q. Every token then has exactly the distribution that plain sampling gives it, but it is
// another draw than the one without drafts; draft_verifier.h gives that one. Leviathan et al.,
// "Fast inference from transformers via speculative decoding", 2023; specification, 5.4.
#pragma once

#include <span>
#include <vector>

#include "batch/batch_plan.h"
#include "batch/step_result.h"
#include "sample/draft_verifier.h"
#include "sample/sampler.h"

namespace hadal {

// What a draft was drawn from: ids in ascending order with probabilities that sum to one. Empty:
// the draft had probability one.
using DraftDistribution = std::vector<Sampler::Candidate>;

// Streams of random numbers beside stream 0, with which tokens are drawn.
inline constexpr uint64_t kDraftStream = 16, kAcceptStream = 17, kResidualStream = 18;

// The token that takes `position` when `draft` was proposed for it: the draft or another one. `p`:
// candidates as Sampler::Choose gives them, weights not yet scaled.
TokenId AcceptOrReplace(std::span<const Sampler::Candidate> p, const DraftDistribution& q,
                        TokenId draft, uint64_t seed, int position);

// As SampleSlice. distributions[i]: of the i-th draft; fewer than there are drafts: the others had
// probability one.
void SampleSliceClassic(const BatchPlan& plan, const SequenceSlice& slice,
                        const SliceLogits& logits, std::span<const DraftDistribution> distributions,
                        Sampler* sampler, StepResult* result);

}  // namespace hadal
