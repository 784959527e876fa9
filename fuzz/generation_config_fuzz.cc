// Any bytes as generation_config.json: an error of one line, or settings that a request may have.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "runner/generation_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  const auto json = ParseJson(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!json.ok()) return 0;
  ModelInfo info;
  const Status status = ReadGenerationConfig(json.value(), "fuzz", &info);
  if (!status.ok()) {
    HADAL_CHECK(status.message().find('\n') == std::string::npos);
    return 0;
  }
  const SamplingParams& sampling = info.default_sampling;
  HADAL_CHECK(sampling.temperature >= 0 && sampling.temperature <= 100);
  HADAL_CHECK(sampling.top_p >= 0 && sampling.top_p <= 1);
  HADAL_CHECK(sampling.min_p >= 0 && sampling.min_p <= 1 && sampling.top_k >= 0);
  for (const TokenId token : info.eos_tokens) HADAL_CHECK(token.value >= 0);
  return 0;
}
