#include "runner/draft_picker.h"

#include <cstdint>

#include "base/random.h"

namespace hadal {
namespace {

TokenId DrawIndependently(std::span<const Sampler::Candidate> candidates, uint64_t seed,
                          int position) {
  double total = 0, mass = 0;
  for (const Sampler::Candidate& candidate : candidates) total += candidate.weight;
  const double target = RandomUnit(seed, static_cast<uint64_t>(position), kDraftStream) * total;
  for (const Sampler::Candidate& candidate : candidates) {
    mass += candidate.weight;
    if (mass > target) return {candidate.id};
  }
  return {candidates.back().id};
}

DraftDistribution Scaled(std::span<const Sampler::Candidate> candidates) {
  DraftDistribution distribution(candidates.begin(), candidates.end());
  double total = 0;
  for (const Sampler::Candidate& candidate : distribution) total += candidate.weight;
  for (Sampler::Candidate& candidate : distribution) candidate.weight /= total;
  return distribution;
}

}  // namespace

bool DraftPicker::Pick(const DraftTask& task, std::span<float> logits) {
  params_ = task.slice->sampling;
  params_.num_logprobs = -1;
  const SamplerInput input{.logits = logits,
                           .params = &params_,
                           .position = static_cast<int>(task.text.size() + task.drafts->size()),
                           .history = task.text,
                           .recent = *task.drafts,
                           .num_prompt_tokens = task.slice->num_prompt_tokens,
                           .allowed = {}};
  SampledToken token;
  const bool is_drawn =
      task.distributions == nullptr
          ? sampler_->Sample(input, &token, &no_logprobs_)
          : sampler_->SampleBy(
                input,
                [&](std::span<const Sampler::Candidate> candidates) {
                  task.distributions->push_back(Scaled(candidates));
                  return DrawIndependently(candidates, params_.seed, input.position);
                },
                &token, &no_logprobs_);
  if (is_drawn) task.drafts->push_back(token.token);
  return is_drawn;
}

}  // namespace hadal
