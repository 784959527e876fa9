#include "model/expert_router.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hadal {
namespace {

// The open index with the largest value, the lowest among equals. REQUIRES: at least one is open.
int ArgMaxOpen(std::span<const float> values, std::span<const char> is_open) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    const auto idx = static_cast<size_t>(i);
    if (is_open[idx] != 0 && (best < 0 || values[idx] > values[static_cast<size_t>(best)]))
      best = i;
  }
  return best;
}

void Softmax(std::span<float> values) {
  const float max = *std::max_element(values.begin(), values.end());
  float sum = 0.0f;
  for (float& value : values) {
    value = std::exp(value - max);
    sum += value;
  }
  for (float& value : values) value /= sum;
}

}  // namespace

ExpertRouter::ExpertRouter(const ModelConfig& config)
    : n_group_(config.topk_method == TopkMethod::kGreedy ? 1 : config.n_group),
      topk_group_(config.topk_group),
      topk_method_(config.topk_method),
      scoring_func_(config.scoring_func),
      norm_topk_prob_(config.norm_topk_prob),
      routed_scaling_factor_(static_cast<float>(config.routed_scaling_factor)),
      choice_scores_(static_cast<size_t>(config.n_routed_experts)),
      group_scores_(static_cast<size_t>(n_group_)),
      is_open_(static_cast<size_t>(config.n_routed_experts)),
      is_group_open_(static_cast<size_t>(n_group_)) {}

void ExpertRouter::Route(std::span<float> logits, std::span<const float> correction_bias,
                         std::span<int32_t> ids, std::span<float> weights) {
  Score(logits);
  std::copy(logits.begin(), logits.end(), choice_scores_.begin());
  for (size_t e = 0; e < correction_bias.size(); ++e) choice_scores_[e] += correction_bias[e];
  std::fill(is_open_.begin(), is_open_.end(), char{1});
  if (n_group_ > 1) KeepBestGroups();
  PickExperts(ids);
  WeighExperts(logits, ids, weights);
}

void ExpertRouter::Score(std::span<float> logits) const {
  if (scoring_func_ == ScoringFunc::kSoftmax) {
    Softmax(logits);
    return;
  }
  for (float& logit : logits) logit = 1.0f / (1.0f + std::exp(-logit));
}

// V2 takes the largest score of the group, V3 the sum of its two largest biased scores.
float ExpertRouter::GroupScore(int group) const {
  const size_t size = choice_scores_.size() / static_cast<size_t>(n_group_);
  const auto scores = std::span(choice_scores_).subspan(static_cast<size_t>(group) * size, size);
  float first = -std::numeric_limits<float>::infinity(), second = first;
  for (const float score : scores) {
    if (score > first) {
      second = first;
      first = score;
    } else if (score > second) {
      second = score;
    }
  }
  return topk_method_ == TopkMethod::kNoauxTc && size > 1 ? first + second : first;
}

void ExpertRouter::KeepBestGroups() {
  for (int group = 0; group < n_group_; ++group) {
    group_scores_[static_cast<size_t>(group)] = GroupScore(group);
  }
  // A group that was taken is closed; its experts are the ones that stay open.
  std::fill(is_group_open_.begin(), is_group_open_.end(), char{1});
  for (int kept = 0; kept < topk_group_; ++kept) {
    is_group_open_[static_cast<size_t>(ArgMaxOpen(group_scores_, is_group_open_))] = 0;
  }
  const size_t size = choice_scores_.size() / static_cast<size_t>(n_group_);
  // Experts of other groups are out whatever their score: as if it were minus infinity, not zero.
  for (size_t e = 0; e < is_open_.size(); ++e) is_open_[e] = is_group_open_[e / size] == 0 ? 1 : 0;
}

void ExpertRouter::PickExperts(std::span<int32_t> ids) {
  for (int32_t& id : ids) {
    id = ArgMaxOpen(choice_scores_, is_open_);
    is_open_[static_cast<size_t>(id)] = 0;
  }
}

void ExpertRouter::WeighExperts(std::span<const float> scores, std::span<const int32_t> ids,
                                std::span<float> weights) const {
  float sum = 0.0f;
  for (size_t k = 0; k < ids.size(); ++k) {
    weights[k] = scores[static_cast<size_t>(ids[k])];
    sum += weights[k];
  }
  const bool is_v3 = topk_method_ == TopkMethod::kNoauxTc;
  const bool is_normalised = norm_topk_prob_ && (is_v3 || ids.size() > 1);
  if (is_normalised) {
    for (float& weight : weights) weight /= sum + 1e-20f;
  }
  // V2 normalises or scales, V3 scales after normalising.
  if (is_v3 || !is_normalised) {
    for (float& weight : weights) weight *= routed_scaling_factor_;
  }
}

}  // namespace hadal
