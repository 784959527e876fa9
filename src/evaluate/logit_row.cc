#include "evaluate/logit_row.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hadal {

double LogSumExp(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

double NegativeLogLikelihood(std::span<const float> logits, int32_t id) {
  return LogSumExp(logits) - logits[static_cast<size_t>(id)];
}

int32_t BestId(std::span<const float> logits) {
  return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
}

double KlDivergence(std::span<const float> p, std::span<const float> q) {
  HADAL_CHECK(p.size() == q.size());
  const double p_total = LogSumExp(p), q_total = LogSumExp(q);
  double divergence = 0.0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_total, log_q = q[i] - q_total;
    const double share = std::exp(log_p);
    if (share > 0.0) divergence += share * (log_p - log_q);
  }
  return divergence;
}

}  // namespace hadal
