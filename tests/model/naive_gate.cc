#include "tests/model/naive_gate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hadal {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Indices of the k largest, best first.
std::vector<int> Largest(const std::vector<double>& scores, int k) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return scores[a] > scores[b]; });
  order.resize(std::min<size_t>(order.size(), k));
  return order;
}

// The same, and how far the k-th is from the one after it in units of `size`.
std::vector<int> Choose(const std::vector<double>& scores, int k, double size, double* clearest) {
  const std::vector<int> order = Largest(scores, k + 1);
  if (static_cast<int>(order.size()) > k) {
    *clearest = std::min(*clearest, (scores[order[k - 1]] - scores[order[k]]) / size);
  }
  return Largest(scores, k);
}

// Scores with everything outside the best `topk_group` groups replaced by `masked`.
std::vector<double> KeepGroups(const std::vector<double>& scores,
                               const std::vector<double>& group_scores, const ModelConfig& config,
                               double size, double masked, double* clearest) {
  const int group_size = static_cast<int>(scores.size()) / config.n_group;
  std::vector<double> kept(scores.size(), masked);
  for (const int g : Choose(group_scores, config.topk_group, size, clearest)) {
    for (int e = g * group_size; e < (g + 1) * group_size; ++e) kept[e] = scores[e];
  }
  return kept;
}

}  // namespace

void NaiveSoftmax(std::vector<double>* x) {
  const double largest = *std::max_element(x->begin(), x->end());
  double sum = 0;
  for (double& v : *x) sum += v = std::exp(v - largest);
  for (double& v : *x) v /= sum;
}

std::vector<NaiveExpertWeight> NaiveV2Gate(const ModelConfig& config,
                                           const std::vector<double>& logits, double* clearest) {
  std::vector<double> p = logits;
  NaiveSoftmax(&p);
  std::vector<double> candidates = p;
  if (config.topk_method == TopkMethod::kGroupLimitedGreedy) {
    const int group_size = static_cast<int>(p.size()) / config.n_group;
    std::vector<double> best(config.n_group);
    for (int g = 0; g < config.n_group; ++g) {
      best[g] = *std::max_element(p.begin() + g * group_size, p.begin() + (g + 1) * group_size);
    }
    const double size = best[Largest(best, config.topk_group).back()];
    candidates = KeepGroups(p, best, config, size, 0.0, clearest);
  }
  const int k = config.num_experts_per_tok;
  const double size = candidates[Largest(candidates, k).back()];
  std::vector<NaiveExpertWeight> chosen;
  double sum = 0;
  for (const int e : Choose(candidates, k, size, clearest)) {
    chosen.push_back({e, p[e]});
    sum += p[e];
  }
  // Either normalised or scaled, never both.
  for (NaiveExpertWeight& c : chosen) {
    c.weight = k > 1 && config.norm_topk_prob ? c.weight / (sum + 1e-20)
                                              : c.weight * config.routed_scaling_factor;
  }
  return chosen;
}

std::vector<NaiveExpertWeight> NaiveV3Gate(const ModelConfig& config,
                                           const std::vector<double>& logits,
                                           const std::vector<double>& bias, double* clearest) {
  std::vector<double> s(logits.size()), biased(logits.size());
  for (size_t e = 0; e < s.size(); ++e) {
    s[e] = 1 / (1 + std::exp(-logits[e]));
    biased[e] = s[e] + bias[e];
  }
  if (config.n_group > 1) {
    const int group_size = static_cast<int>(s.size()) / config.n_group;
    std::vector<double> sums(config.n_group);
    for (int g = 0; g < config.n_group; ++g) {
      const std::vector<double> members(biased.begin() + g * group_size,
                                        biased.begin() + (g + 1) * group_size);
      for (const int e : Largest(members, 2)) sums[g] += members[e];
    }
    biased = KeepGroups(biased, sums, config, 1.0, kNever, clearest);
  }
  std::vector<NaiveExpertWeight> chosen;
  double sum = 0;
  for (const int e : Choose(biased, config.num_experts_per_tok, 1.0, clearest)) {
    chosen.push_back({e, s[e]});
    sum += s[e];
  }
  for (NaiveExpertWeight& c : chosen) {
    if (config.norm_topk_prob) c.weight /= sum + 1e-20;
    c.weight *= config.routed_scaling_factor;
  }
  return chosen;
}

std::vector<int> NaiveIndexScores::Best(int k, double* clearest) const {
  std::vector<int> best = Largest(values, k);
  if (static_cast<int>(values.size()) > k) {
    double size = 0;
    for (const double v : values) size = std::max(size, std::abs(v));
    const double last = values[best.back()];
    const double next = values[Largest(values, k + 1).back()];
    if (last == 0 && next == 0) {
      for (size_t s = 0; s < values.size(); ++s) {
        if (values[s] == 0) *clearest = std::min(*clearest, -largest_dot[s]);
      }
    } else {
      *clearest = std::min(*clearest, (last - next) / size);
    }
  }
  std::sort(best.begin(), best.end());
  return best;
}

}  // namespace hadal
