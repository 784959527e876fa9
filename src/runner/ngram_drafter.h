// Guesses that the text goes on as it did when its last tokens came before, in the prompt or in the
// answer ("prompt lookup"). Costs next to nothing, and is right where text is copied: summaries,
// edits of code, lists, JSON.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "runner/drafter.h"

namespace hadal {

// Finds earlier occurrences of the end of a text that grows. Each pair of neighbouring tokens is
// linked to the place where it came last before, so a token costs one look-up to add and a search
// walks only over places that agree in two tokens.
class SuffixIndex {
 public:
  // Takes in the tokens of `text` that are new. REQUIRES: it begins with the earlier ones.
  void Extend(std::span<const TokenId> text);

  // The end of the best earlier occurrence of the text's end: where the most tokens before it
  // agree, up to kMaxMatch; of equals the latest. -1 when not even two agree. The same text as in
  // Extend().
  int FindLongest(std::span<const TokenId> text) const;

  static constexpr int kMinMatch = 2;
  static constexpr int kMaxMatch = 32;   // longer ones are as good
  static constexpr int kMaxPlaces = 64;  // looked at, from the latest on

 private:
  static uint64_t PairAt(std::span<const TokenId> text, size_t end);

  std::unordered_map<uint64_t, int32_t> last_end_;  // of each pair
  std::vector<int32_t> previous_end_;               // [end of a pair]: where it ended before, or -1
};

class NgramDrafter final : public Drafter {
 public:
  Status Propose(const BatchPlan& plan, std::span<const DraftTask> tasks) override;
  void Forget(SequenceId id) override { indices_.erase(id); }

 private:
  std::unordered_map<SequenceId, SuffixIndex> indices_;
};

}  // namespace hadal
