// Any bytes as config.json: an error of one line, or numbers that the engine can work with.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "model/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  const auto json = ParseJson(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!json.ok()) {
    HADAL_CHECK(json.status().message().find('\n') == std::string::npos);
    return 0;
  }
  const auto config = ModelConfig::Parse(json.value(), "fuzz");
  if (!config.ok()) {
    HADAL_CHECK(config.status().message().find('\n') == std::string::npos);
    return 0;
  }
  const ModelConfig& c = config.value();
  HADAL_CHECK(std::isfinite(c.softmax_scale()) && c.softmax_scale() > 0);
  HADAL_CHECK(c.latent_dim() > 0 && c.qk_head_dim() > 0 && c.num_stored_layers() > 0);
  if (c.has_experts()) {
    HADAL_CHECK(c.n_routed_experts % c.n_group == 0);
    HADAL_CHECK(c.num_experts_per_tok <= c.topk_group * (c.n_routed_experts / c.n_group));
    HADAL_CHECK(c.routed_scaling_factor > 0);
  }
  return 0;
}
