// Which experts a token goes to, and with which weights. DeepSeek-V2 report, 2.2; DeepSeek-V3
// report, 2.1.2; specification, 4.1 and 4.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model_config.h"
#include "tensor/matrix.h"

namespace hadal {

class ExpertRouter {
 public:
  explicit ExpertRouter(const ModelConfig& config);

  // From the router's logits [n_routed_experts], which are overwritten: ids and weights
  // [num_experts_per_tok], best first. correction_bias [n_routed_experts] takes part in choosing,
  // never in the weights; empty for none. Among equal values the lower index wins, for groups and
  // for experts. Logits that are no numbers still give valid ids.
  void Route(std::span<float> logits, std::span<const float> correction_bias,
             std::span<int32_t> ids, std::span<float> weights);

 private:
  void Score(std::span<float> logits) const;
  void KeepBestGroups();
  float GroupScore(int group) const;
  void PickExperts(std::span<int32_t> ids);
  void WeighExperts(std::span<const float> scores, std::span<const int32_t> ids,
                    std::span<float> weights) const;

  int n_group_, topk_group_;
  TopkMethod topk_method_;
  ScoringFunc scoring_func_;
  bool norm_topk_prob_;
  float routed_scaling_factor_;
  std::vector<float> choice_scores_;  // biased scores
  std::vector<float> group_scores_;
  std::vector<char> is_open_;  // experts that may still be picked
  std::vector<char> is_group_open_;
};

}  // namespace hadal
