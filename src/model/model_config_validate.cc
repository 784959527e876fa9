// Every assumption of the engine about the numbers of a model.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "model/model_config.h"

namespace hadal {
namespace {

// The first rule that does not hold, as one line.
class Rules {
 public:
  explicit Rules(const std::string& what) : what_(what) {}

  template <class T>
  void Expect(bool holds, std::string_view key, std::string_view expected, const T& found) {
    if (holds || !status_.ok()) return;
    status_ =
        Status::Corrupt(fmt::format("{}: {}: expected {}, found {}", what_, key, expected, found));
  }
  const Status& status() const { return status_; }

 private:
  const std::string& what_;
  Status status_;
};

void CheckAttention(const ModelConfig& c, Rules* rules) {
  rules->Expect(c.qk_rope_head_dim % 2 == 0, "qk_rope_head_dim", "an even number",
                c.qk_rope_head_dim);
  const auto heads = static_cast<int64_t>(c.num_attention_heads);
  const int64_t widest = heads * std::max(c.qk_head_dim(), c.qk_nope_head_dim + c.v_head_dim);
  rules->Expect(widest <= INT32_MAX, "num_attention_heads", "heads times head width below 2^31",
                widest);
  rules->Expect(c.rms_norm_eps > 0 && c.rms_norm_eps < 1, "rms_norm_eps", "a number from 0 to 1",
                c.rms_norm_eps);
}

void CheckRope(const ModelConfig& c, Rules* rules) {
  rules->Expect(c.rope_theta > 1, "rope_theta", "a number above 1", c.rope_theta);
  const RopeScaling& rope = c.rope_scaling;
  if (!rope.is_yarn) return;
  rules->Expect(rope.factor >= 1, "rope scaling factor", "a number of at least 1", rope.factor);
  rules->Expect(rope.beta_slow > 0, "beta_slow", "a number above 0", rope.beta_slow);
  rules->Expect(rope.beta_fast >= rope.beta_slow, "beta_fast", "a number not below beta_slow",
                rope.beta_fast);
  rules->Expect(rope.mscale >= 0, "mscale", "a number of at least 0", rope.mscale);
  rules->Expect(rope.mscale_all_dim >= 0, "mscale_all_dim", "a number of at least 0",
                rope.mscale_all_dim);
}

void CheckGate(const ModelConfig& c, Rules* rules) {
  rules->Expect(
      (c.scoring_func == ScoringFunc::kSigmoid) == (c.topk_method == TopkMethod::kNoauxTc),
      "scoring_func", "sigmoid with topk_method noaux_tc, softmax with the others",
      c.scoring_func == ScoringFunc::kSigmoid ? "sigmoid" : "softmax");
  rules->Expect(c.routed_scaling_factor > 0, "routed_scaling_factor", "a number above 0",
                c.routed_scaling_factor);
  rules->Expect(c.n_routed_experts % c.n_group == 0, "n_group",
                fmt::format("a divisor of n_routed_experts, {}", c.n_routed_experts), c.n_group);
  rules->Expect(c.topk_group <= c.n_group, "topk_group",
                fmt::format("at most n_group, {}", c.n_group), c.topk_group);
  const int group_size = c.n_routed_experts / c.n_group;
  // The score of a group is the sum of its two best. Specification, 4.2.
  rules->Expect(c.topk_method != TopkMethod::kNoauxTc || c.n_group == 1 || group_size >= 2,
                "n_group", "at least two experts in a group", c.n_group);
  rules->Expect(
      c.num_experts_per_tok <= static_cast<int64_t>(c.topk_group) * group_size,
      "num_experts_per_tok",
      fmt::format("at most {}, the experts of {} of {} groups",
                  static_cast<int64_t>(c.topk_group) * group_size, c.topk_group, c.n_group),
      c.num_experts_per_tok);
}

void CheckExperts(const ModelConfig& c, Rules* rules) {
  const int64_t shared = static_cast<int64_t>(c.n_shared_experts) * c.moe_intermediate_size;
  rules->Expect(shared <= INT32_MAX, "n_shared_experts", "a width of all below 2^31", shared);
  // A bound on the names that a crafted config can make us look up.
  const int64_t all = static_cast<int64_t>(c.num_stored_layers()) * c.n_routed_experts;
  rules->Expect(all <= 1 << 20, "n_routed_experts", "at most 2^20 experts in all layers", all);
  CheckGate(c, rules);
}

// Sparse attention needs the query latent and rotates the first part of each index vector.
// Specification, 6.1.
void CheckIndexer(const ModelConfig& c, Rules* rules) {
  rules->Expect(c.q_lora_rank > 0, "q_lora_rank", "at least 1 in a model with an indexer",
                c.q_lora_rank);
  rules->Expect(c.index_head_dim >= c.qk_rope_head_dim, "index_head_dim",
                fmt::format("at least qk_rope_head_dim, {}", c.qk_rope_head_dim), c.index_head_dim);
  const int64_t width = static_cast<int64_t>(c.index_n_heads) * c.index_head_dim;
  rules->Expect(width <= INT32_MAX, "index_n_heads", "heads times head width below 2^31", width);
}

}  // namespace

Status ModelConfig::Validate(const std::string& what) const {
  Rules rules(what);
  CheckAttention(*this, &rules);
  CheckRope(*this, &rules);
  if (has_experts()) CheckExperts(*this, &rules);
  if (has_indexer()) CheckIndexer(*this, &rules);
  return rules.status();
}

}  // namespace hadal
