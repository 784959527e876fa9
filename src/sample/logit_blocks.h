// A row of logits, looked at in blocks: maxima and sums of weights by block, so that what is asked
// of a vocabulary of 129,280 (the best, the best few, a draw from all) passes over it once or twice
// with vector instructions and then looks at a few blocks only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/types.h"

namespace hadal {

class LogitBlocks {
 public:
  static constexpr int kBlockLogits = 256;

  // Tokens this far below the best one, in units of temperature, have no weight: all of a
  // vocabulary together (1e5 * exp(-50) = 2e-17) has less probability than one step of the random
  // number (2^-53), so no draw could fall on them.
  static constexpr double kNegligible = 50.0;

  // Rows of up to `max_size` logits; nothing is allocated behind this.
  explicit LogitBlocks(int max_size);

  // Looks at a row, which the functions below refer to until the next one. False when it is not
  // finite: a NaN, +inf, or nothing but -inf.
  [[nodiscard]] bool Read(std::span<const float> logits);

  float max() const { return max_; }

  // The lowest id among those with the largest logit.
  TokenId Best() const;

  // Calls visit(id, logit) for the finite logits of at least `lowest`, ids ascending.
  template <class Visit>
  void VisitFrom(double lowest, const Visit& visit) const {
    for (size_t block = 0; block < block_max_.size(); ++block) {
      if (!(block_max_[block] >= lowest)) continue;
      const size_t begin = block * kBlockLogits;
      const std::span<const float> logits = BlockAt(block);
      for (size_t i = 0; i < logits.size(); ++i)
        if (logits[i] >= lowest && logits[i] >= kLowestFinite)
          visit(static_cast<int32_t>(begin + i), logits[i]);
    }
  }

  // The sum of exp((logit - max) / temperature) over logits below `below`. Weights
  // near the best one's, which is exactly 1, are right to 2e-7 of themselves, negligible ones to
  // 4e-6. REQUIRES: temperature > 0.
  double SumWeights(double temperature, float below = std::numeric_limits<float>::infinity());

  // The token on which `target` falls when the weights of all are laid side by side, ids ascending.
  // REQUIRES: the last sum that was asked for is SumWeights(temperature), and target below it.
  TokenId AtWeight(double target, double temperature) const;

 private:
  static constexpr float kLowestFinite = -3.40282347e38f;

  std::span<const float> BlockAt(size_t block) const {
    const size_t begin = block * kBlockLogits;
    return logits_.subspan(begin, std::min<size_t>(kBlockLogits, logits_.size() - begin));
  }

  std::span<const float> logits_;
  float max_ = 0;
  std::vector<float> block_max_;   // [blocks of the row]
  std::vector<double> block_sum_;  // [blocks of the row], of the last SumWeights
};

}  // namespace hadal
