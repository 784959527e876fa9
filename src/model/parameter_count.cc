#include "model/parameter_count.h"

namespace hadal {
namespace {

// A routed expert takes part in num_experts_per_tok of n_routed_experts tokens.
bool IsActive(const ModelConfig& config, const ExpectedWeight& weight) {
  return weight.expert_idx < config.num_experts_per_tok;
}

}  // namespace

ParameterCount CountParameters(const ModelConfig& config) {
  ParameterCount count;
  ForEachWeight(config, [&](const ExpectedWeight& weight) {
    const int64_t elements = weight.num_elements();
    count.total += elements;
    count.by_part[static_cast<size_t>(weight.part)] += elements;
    if (IsActive(config, weight)) count.active += elements;
    if (weight.part == WeightPart::kEmbedding) count.embedding += elements;
  });
  if (config.num_nextn_predict_layers == 0) return count;
  ForEachMtpWeight(config, [&](const ExpectedWeight& weight) {
    if (weight.has_fallback) return;
    count.mtp += weight.num_elements();
    if (IsActive(config, weight)) count.mtp_active += weight.num_elements();
  });
  return count;
}

}  // namespace hadal
