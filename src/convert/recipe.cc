#include "convert/recipe.h"

namespace hadal {

std::optional<GroupShape> DefaultFormat(const ExpectedWeight& weight, const GroupShape& shape) {
  if (weight.shape.size() != 2 || weight.shape[1] % kSmallestGroup != 0) return std::nullopt;
  switch (weight.role) {
    case WeightRole::kEmbedding:
    case WeightRole::kMtpEmbedding:
    case WeightRole::kKvB:
    case WeightRole::kRouter:
    case WeightRole::kIndexerWeights:
      return std::nullopt;
    case WeightRole::kHead:
    case WeightRole::kMtpHead:
      if (shape.format == QuantFormat::kInt8Group) return shape;
      return GroupShape{QuantFormat::kInt8Group, kHeadGroupSize, false};
    default:
      return shape;
  }
}

}  // namespace hadal
