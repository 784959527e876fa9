#include "runner/generation_config.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/json.h"

namespace hadal {
namespace {

Status AddEosTokens(const Json& config, const std::string& what, ModelInfo* info) {
  if (!HasValue(config, "eos_token_id")) return Status::Ok();
  const Json& value = config["eos_token_id"];
  const Json list = value.is_array() ? value : Json::array({value});
  for (const Json& entry : list) {
    if (!entry.is_number_integer() || entry < 0 || entry > INT32_MAX) {
      return Status::Corrupt(
          fmt::format("{}: eos_token_id: expected a token id or a list of them, found {}", what,
                      DumpJson(value)));
    }
    const TokenId token = {entry.get<int32_t>()};
    if (std::ranges::find(info->eos_tokens, token) == info->eos_tokens.end())
      info->eos_tokens.push_back(token);
  }
  return Status::Ok();
}

Status CheckRange(double value, double low, double high, const char* key, const std::string& what) {
  if (value >= low && value <= high) return Status::Ok();
  return Status::Corrupt(fmt::format("{}: {}: expected a number from {} to {}, found {}", what, key,
                                     low, high, value));
}

}  // namespace

Status ReadGenerationConfig(const Json& config, const std::string& what, ModelInfo* info) {
  if (config.is_null()) return Status::Ok();
  RETURN_IF_ERROR(AddEosTokens(config, what, info));
  SamplingParams& sampling = info->default_sampling;
  // Transformers, whose file this is, samples only when told to.
  ASSIGN_OR_RETURN(const bool do_sample,
                   ReadBoolOr(config, "do_sample", HasValue(config, "temperature"), what));
  ASSIGN_OR_RETURN(const double temperature, ReadNumberOr(config, "temperature", 1.0, what));
  ASSIGN_OR_RETURN(const double top_p, ReadNumberOr(config, "top_p", 1.0, what));
  ASSIGN_OR_RETURN(const double min_p, ReadNumberOr(config, "min_p", 0.0, what));
  ASSIGN_OR_RETURN(const int64_t top_k, ReadIntOr(config, "top_k", 0, INT32_MAX, 0, what));
  ASSIGN_OR_RETURN(const double repetition, ReadNumberOr(config, "repetition_penalty", 1.0, what));
  RETURN_IF_ERROR(CheckRange(temperature, 0.0, 100.0, "temperature", what));
  RETURN_IF_ERROR(CheckRange(top_p, 0.0, 1.0, "top_p", what));
  RETURN_IF_ERROR(CheckRange(min_p, 0.0, 1.0, "min_p", what));
  RETURN_IF_ERROR(CheckRange(repetition, 0.01, 100.0, "repetition_penalty", what));
  sampling.repetition_penalty = static_cast<float>(repetition);
  if (!do_sample) return Status::Ok();
  sampling.temperature = static_cast<float>(temperature);
  sampling.top_p = static_cast<float>(top_p);
  sampling.min_p = static_cast<float>(min_p);
  sampling.top_k = static_cast<int>(top_k);
  return Status::Ok();
}

}  // namespace hadal
