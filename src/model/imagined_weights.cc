#include "model/imagined_weights.h"

#include "base/check.h"
#include "base/types.h"
#include "model/weight_formats.h"
#include "model/weight_slots.h"

namespace hadal {
namespace {

// A matrix is there when its data is not null; nobody reads these bytes.
constexpr std::byte kNothing{0}, kNothingOfHead{0};

QuantizedMatrix InRows(QuantFormat format, int rows, int cols) {
  QuantizedMatrix matrix;
  matrix.format = format;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.data = &kNothing;
  if (format == QuantFormat::kF8Block128) matrix.scale_stride = CeilDiv(cols, kF8BlockSize);
  return matrix;
}

QuantizedMatrix InTiles(const GroupShape& shape, int rows, int cols) {
  QuantizedMatrix matrix = InRows(shape.format, rows, cols);
  matrix.layout = WeightLayout::kTiles;
  matrix.group_size = shape.group_size;
  matrix.has_zero_points = shape.has_zero_points;
  return matrix;
}

QuantizedMatrix Imagine(const ExpectedWeight& weight, QuantFormat format) {
  const auto rows = static_cast<int>(weight.shape[0]), cols = static_cast<int>(weight.shape[1]);
  if (IsGrouped(format)) {
    const auto shape = DefaultFormat(weight.role, cols, {format, DefaultGroupSize(format), false});
    if (shape) return InTiles(*shape, rows, cols);
  }
  const bool is_fp8 = (format == QuantFormat::kF8Block128 && IsPublishedInFp8(weight.role)) ||
                      (format == QuantFormat::kInt4Group && weight.role == WeightRole::kKvB);
  return InRows(is_fp8 ? QuantFormat::kF8Block128 : QuantFormat::kBF16, rows, cols);
}

}  // namespace

bool IsPublishedInFp8(WeightRole role) {
  switch (role) {
    case WeightRole::kEmbedding:
    case WeightRole::kHead:
    case WeightRole::kRouter:
    case WeightRole::kIndexerWeights:
    case WeightRole::kMtpEmbedding:
    case WeightRole::kMtpHead:
    case WeightRole::kMtpProjection:
      return false;
    default:
      return true;
  }
}

ModelWeights ImagineWeights(const ModelConfig& config, QuantFormat format) {
  HADAL_CHECK(format != QuantFormat::kF32 && format != QuantFormat::kF16);
  ModelWeights model;
  model.layers.resize(static_cast<size_t>(config.num_hidden_layers));
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (!config.is_moe_layer(layer)) continue;
    FeedForwardWeights& mixture = model.layers[static_cast<size_t>(layer)].feed_forward;
    for (auto* experts : {&mixture.expert_gate, &mixture.expert_up, &mixture.expert_down}) {
      experts->resize(static_cast<size_t>(config.n_routed_experts));
    }
  }
  ForEachWeight(config, [&](const ExpectedWeight& weight) {
    if (weight.shape.size() != 2) return;
    QuantizedMatrix* matrix =
        ModelMatrix(config, weight.role, weight.layer_idx, weight.expert_idx, &model);
    HADAL_CHECK(matrix != nullptr);
    *matrix = Imagine(weight, format);
  });
  // Where the two lie at one place they count once.
  model.head.data = &kNothingOfHead;
  if (config.tie_word_embeddings) model.head = model.embedding;
  return model;
}

}  // namespace hadal
