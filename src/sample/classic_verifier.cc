#include "sample/classic_verifier.h"

#include <algorithm>

#include "base/random.h"
#include "sample/rejection_rule.h"

namespace hadal {
namespace {

double ProbabilityOf(std::span<const Sampler::Candidate> distribution, TokenId token) {
  const auto found =
      std::ranges::lower_bound(distribution, token.value, {}, &Sampler::Candidate::id);
  return found != distribution.end() && found->id == token.value ? found->weight : 0;
}

double DraftProbability(const DraftDistribution& q, int32_t id, TokenId draft) {
  if (q.empty()) return id == draft.value ? 1 : 0;
  return ProbabilityOf(q, {id});
}

}  // namespace

TokenId AcceptOrReplace(std::span<const Sampler::Candidate> p, const DraftDistribution& q,
                        TokenId draft, uint64_t seed, int position) {
  const auto at = static_cast<uint64_t>(position);
  double total = 0;
  for (const Sampler::Candidate& candidate : p) total += candidate.weight;
  const double target = ProbabilityOf(p, draft) / total;
  const double drafted = DraftProbability(q, draft.value, draft);
  if (RandomUnit(seed, at, kAcceptStream) < AcceptProbability(target, drafted)) return draft;

  std::vector<double> target_mass, draft_mass;
  for (const Sampler::Candidate& candidate : p) {
    target_mass.push_back(candidate.weight / total);
    draft_mass.push_back(DraftProbability(q, candidate.id, draft));
  }
  ResidualDistribution(target_mass, draft_mass, target_mass);
  const double threshold = RandomUnit(seed, at, kResidualStream);
  double mass = 0;
  TokenId last = {p.front().id};
  for (size_t i = 0; i < p.size(); ++i) {
    if (target_mass[i] <= 0) continue;
    last = {p[i].id};
    mass += target_mass[i];
    if (mass > threshold) break;
  }
  return last;
}

void SampleSliceClassic(const BatchPlan& plan, const SequenceSlice& slice,
                        const SliceLogits& logits, std::span<const DraftDistribution> distributions,
                        Sampler* sampler, StepResult* result) {
  static const DraftDistribution kCertain;
  SampleSliceBy(
      plan, slice, logits,
      [&](int row, const SamplerInput& input, SampledToken* token) {
        if (row >= slice.num_drafts) return sampler->Sample(input, token, &result->top_logprobs);
        const auto i = static_cast<size_t>(row);
        const DraftDistribution& q = i < distributions.size() ? distributions[i] : kCertain;
        const TokenId draft = plan.tokens[static_cast<size_t>(slice.token_begin + slice.num_tokens -
                                                              slice.num_drafts + row)];
        return sampler->SampleBy(
            input,
            [&](std::span<const Sampler::Candidate> p) {
              return AcceptOrReplace(p, q, draft, slice.sampling.seed, input.position);
            },
            token, &result->top_logprobs);
      },
      result);
}

}  // namespace hadal
