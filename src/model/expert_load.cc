#include "model/expert_load.h"

#include <algorithm>

namespace hadal {

ExpertLoad::ExpertLoad(int num_layers, int num_experts)
    : num_layers_(num_layers),
      num_experts_(num_experts),
      tokens_(static_cast<size_t>(num_layers) * static_cast<size_t>(num_experts)),
      is_chosen_(static_cast<size_t>(num_experts)) {}

void ExpertLoad::Count(int layer_idx, MatrixView<const int32_t> ids) {
  const size_t begin = static_cast<size_t>(layer_idx) * static_cast<size_t>(num_experts_);
  std::ranges::fill(is_chosen_, 0);
  int64_t num_chosen = 0;
  for (int t = 0; t < ids.rows; ++t) {
    for (const int32_t id : ids.row(t)) {
      const auto expert = static_cast<size_t>(id);
      tokens_[begin + expert].fetch_add(1, std::memory_order_relaxed);
      num_chosen += is_chosen_[expert] == 0 ? 1 : 0;
      is_chosen_[expert] = 1;
    }
  }
  num_reads_.fetch_add(num_chosen, std::memory_order_relaxed);
}

double ExpertLoad::Imbalance(int layer_idx) const {
  const size_t begin = static_cast<size_t>(layer_idx) * static_cast<size_t>(num_experts_);
  int64_t busiest = 0, sum = 0;
  for (int expert = 0; expert < num_experts_; ++expert) {
    const int64_t tokens =
        tokens_[begin + static_cast<size_t>(expert)].load(std::memory_order_relaxed);
    busiest = std::max(busiest, tokens);
    sum += tokens;
  }
  if (sum == 0) return 0.0;
  return static_cast<double>(busiest) * num_experts_ / static_cast<double>(sum);
}

}  // namespace hadal
