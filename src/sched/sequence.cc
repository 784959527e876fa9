#include "sched/sequence.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hadal {

Sequence::Sequence(Request request, int64_t arrival, int64_t due_us, int max_total_tokens)
    : request_(std::move(request)),
      arrival_(arrival),
      due_us_(due_us),
      max_total_tokens_(max_total_tokens),
      tokens_(request_.prompt) {
  HADAL_CHECK(!tokens_.empty() && max_total_tokens > num_tokens());
  table.salt = request_.cache_salt;
  first_saved = request_.first_saved_token;
  num_saved = request_.num_saved_tokens;
}

void Sequence::ReserveMemory(int block_tokens) {
  tokens_.reserve(static_cast<size_t>(max_total_tokens_));
  table.blocks.reserve(static_cast<size_t>(CeilDiv(max_total_tokens_, block_tokens)));
}

FinishReason Sequence::Append(TokenId token) {
  if (std::ranges::find(request_.stop_tokens, token) != request_.stop_tokens.end())
    return FinishReason::kStop;
  tokens_.push_back(token);
  return num_tokens() == max_total_tokens_ ? FinishReason::kLength : FinishReason::kNone;
}

void Sequence::SetDrafts(std::span<const TokenId> guesses) {
  const size_t num_useful = static_cast<size_t>(NumUsefulDrafts(num_tokens()));
  guesses = guesses.first(std::min(guesses.size(), num_useful));
  drafts.assign(guesses.begin(), guesses.end());
}

}  // namespace hadal
