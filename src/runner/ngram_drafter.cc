#include "runner/ngram_drafter.h"

#include <algorithm>

namespace hadal {

uint64_t SuffixIndex::PairAt(std::span<const TokenId> text, size_t end) {
  return static_cast<uint64_t>(static_cast<uint32_t>(text[end - 2].value)) << 32 |
         static_cast<uint32_t>(text[end - 1].value);
}

void SuffixIndex::Extend(std::span<const TokenId> text) {
  if (previous_end_.empty()) previous_end_.assign(2, -1);  // no pair ends before two tokens
  for (size_t end = previous_end_.size(); end <= text.size(); ++end) {
    const auto [place, is_new] =
        last_end_.try_emplace(PairAt(text, end), static_cast<int32_t>(end));
    previous_end_.push_back(is_new ? -1 : place->second);
    place->second = static_cast<int32_t>(end);
  }
}

int SuffixIndex::FindLongest(std::span<const TokenId> text) const {
  if (text.size() <= kMinMatch) return -1;
  const auto size = static_cast<int>(text.size());
  int best_end = -1, best_length = kMinMatch - 1, num_places = 0;
  for (int end = previous_end_[text.size()]; end >= 0 && num_places < kMaxPlaces;
       end = previous_end_[static_cast<size_t>(end)], ++num_places) {
    const int longest = std::min(end, kMaxMatch);
    int length = kMinMatch;
    while (length < longest && text[static_cast<size_t>(end - 1 - length)] ==
                                   text[static_cast<size_t>(size - 1 - length)])
      ++length;
    if (length <= best_length) continue;
    best_length = length;
    best_end = end;
    if (length == kMaxMatch) break;
  }
  return best_end;
}

Status NgramDrafter::Propose(const BatchPlan&, std::span<const DraftTask> tasks) {
  for (const DraftTask& task : tasks) {
    SuffixIndex& index = indices_[task.slice->id];
    index.Extend(task.text);
    if (task.max_drafts == 0) continue;
    const int end = index.FindLongest(task.text);
    if (end < 0) continue;
    // What follows; behind the end of the text the guesses themselves, so that a repetition of any
    // length goes on.
    for (int i = 0; i < task.max_drafts; ++i) {
      const size_t at = static_cast<size_t>(end + i);
      task.drafts->push_back(at < task.text.size() ? task.text[at]
                                                   : (*task.drafts)[at - task.text.size()]);
    }
  }
  return Status::Ok();
}

}  // namespace hadal
