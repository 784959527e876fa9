#include "sample/draft_verifier.h"

#include <functional>

namespace hadal {

void SampleSlice(const BatchPlan& plan, const SequenceSlice& slice, const SliceLogits& logits,
                 Sampler* sampler, StepResult* result) {
  const auto draw = [&](int, const SamplerInput& input, SampledToken* token) {
    return sampler->Sample(input, token, &result->top_logprobs);
  };
  SampleSliceBy(plan, slice, logits, std::cref(draw), result);  // by reference: no allocation
}

void SampleSliceBy(const BatchPlan& plan, const SequenceSlice& slice, const SliceLogits& logits,
                   const DrawRow& draw, StepResult* result) {
  SliceResult drawn{.id = slice.id, .token_begin = static_cast<int>(result->tokens.size())};
  const std::span<const TokenId> new_tokens(plan.tokens.data() + slice.token_begin,
                                            static_cast<size_t>(slice.num_tokens));
  const int num_certain = slice.num_tokens - slice.num_drafts;
  for (int i = 0; slice.wants_tokens && i <= slice.num_drafts; ++i) {
    const SamplerInput input{
        .logits = logits.row(i),
        .params = &slice.sampling,
        .position = slice.num_cached + num_certain + i,
        .history = {plan.history.data() + slice.history_begin,
                    static_cast<size_t>(slice.num_history)},
        .recent = new_tokens.first(static_cast<size_t>(num_certain + i)),
        .num_prompt_tokens = slice.num_prompt_tokens,
        .allowed = {plan.masks.data() + slice.mask_begin + int64_t{i} * slice.num_mask_words,
                    static_cast<size_t>(slice.num_mask_words)}};
    SampledToken token;
    if (!draw(i, input, &token)) {
      drawn.error = SliceError::kLogitsNotFinite;
      drawn.num_tokens = 0;
      result->tokens.resize(static_cast<size_t>(drawn.token_begin));
      break;
    }
    result->tokens.push_back(token);
    ++drawn.num_tokens;
    if (i < slice.num_drafts && new_tokens[num_certain + i] != token.token) break;
  }
  result->slices.push_back(drawn);
}

}  // namespace hadal
