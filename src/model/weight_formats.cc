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
  if (shape.format != QuantFormat::kInt4Group) return shape;
  switch (role) {
    case WeightRole::kHead:
    case WeightRole::kMtpHead:
      return GroupShape{QuantFormat::kInt8Group, 32, false};
    case WeightRole::kGate:
    case WeightRole::kUp:
    case WeightRole::kDown:
      return GroupShape{QuantFormat::kInt8Group, 128, false};
    case WeightRole::kQ:
    case WeightRole::kQA:
    case WeightRole::kQB:
    case WeightRole::kKvA:
    case WeightRole::kOut:
    case WeightRole::kIndexerQB:
    case WeightRole::kIndexerK:
      return GroupShape{QuantFormat::kInt4Group, 32, shape.has_zero_points};
    default:
      return shape;
  }
}

}  // namespace hadal
