#include "runner/sequence_texts.h"

#include <algorithm>

#include "base/check.h"

namespace hadal {

int NumKept(const SequenceSlice& slice, const SliceResult& drawn) {
  return slice.num_tokens - slice.num_drafts + std::max(0, drawn.num_tokens - 1);
}

// The tokens of a sequence never change, so what is known may only grow: a prompt that is read
// again after preemption tells nothing new.
std::span<const TokenId> SequenceTexts::Extend(const BatchPlan& plan, const SequenceSlice& slice,
                                               const SliceResult& drawn, const StepResult& result) {
  std::vector<TokenId>& text = texts_[slice.id];
  const auto put = [&text](size_t position, std::span<const TokenId> tokens) {
    HADAL_CHECK(text.size() >= position);
    if (text.size() >= position + tokens.size()) return;
    text.resize(position);
    text.insert(text.end(), tokens.begin(), tokens.end());
  };
  const auto begin = static_cast<size_t>(slice.num_cached);
  const auto num_kept = static_cast<size_t>(NumKept(slice, drawn));
  const auto in = [](const std::vector<TokenId>& list, int first, size_t count) {
    return std::span(list).subspan(static_cast<size_t>(first), count);
  };
  if (slice.num_history > 0)
    put(0, in(plan.history, slice.history_begin, static_cast<size_t>(slice.num_history)));
  put(begin, in(plan.tokens, slice.token_begin, num_kept));
  size_t end = begin + num_kept;
  if (drawn.num_tokens > 0) {
    const int last = drawn.token_begin + drawn.num_tokens - 1;
    put(end, std::span(&result.tokens[static_cast<size_t>(last)].token, 1));
    ++end;
  }
  return std::span(text).first(end);
}

}  // namespace hadal
