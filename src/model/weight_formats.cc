#include "model/weight_formats.h"

namespace hadal {

bool CanBeGrouped(WeightRole role, int64_t cols) {
  if (cols == 0 || cols % kSmallestGroup != 0) return false;
  switch (role) {
    case WeightRole::kEmbedding:
    case WeightRole::kMtpEmbedding:
    case WeightRole::kKvB:
    case WeightRole::kRouter:
    case WeightRole::kIndexerWeights:
      return false;
    default:
      return true;
  }
}

std::optional<GroupShape> DefaultFormat(WeightRole role, int64_t cols, const GroupShape& shape) {
  if (!CanBeGrouped(role, cols)) return std::nullopt;
  const bool is_head = role == WeightRole::kHead || role == WeightRole::kMtpHead;
  if (is_head && shape.format == QuantFormat::kInt4Group) {
    return GroupShape{QuantFormat::kInt8Group, kHeadGroupSize, false};
  }
  return shape;
}

}  // namespace hadal
