#include "model/kv_b_halves.h"

#include <algorithm>

#include "formats/ggml_blocks.h"

namespace hadal {
namespace {

std::vector<float> Decode(const TensorInfo& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  DecodeGgmlBlocks(FindGgmlType(tensor.dtype)->type, tensor.bytes, values);
  return values;
}

}  // namespace

std::vector<float> JoinKvBHalves(const ModelConfig& config, const TensorInfo& key,
                                 const TensorInfo& value) {
  const std::vector<float> keys = Decode(key), values = Decode(value);
  const auto rank = static_cast<size_t>(config.kv_lora_rank);
  const auto nope = static_cast<size_t>(config.qk_nope_head_dim);
  const size_t value_floats = static_cast<size_t>(config.v_head_dim) * rank;
  std::vector<float> joined(keys.size() + values.size());
  float* out = joined.data();
  for (size_t head = 0; head < static_cast<size_t>(config.num_attention_heads); ++head) {
    const float* of_head = keys.data() + head * rank * nope;
    for (size_t i = 0; i < nope; ++i) {
      for (size_t c = 0; c < rank; ++c) *out++ = of_head[c * nope + i];
    }
    out = std::copy_n(values.data() + head * value_floats, value_floats, out);
  }
  return joined;
}

}  // namespace hadal
