#include "engine/generation_request.h"

#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace hadal {
namespace {

constexpr int kMaxChoices = 128;
constexpr int kMaxPriority = 1'000'000;
constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 1024;
constexpr size_t kMaxStopTokens = 1024;

Status CheckRange(std::string_view field, double value, double low, double high) {
  if (std::isfinite(value) && value >= low && value <= high) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{}: expected a number from {} to {}, found {}", field, low, high, value));
}

Status CheckToken(std::string_view field, TokenId token, int num_tokens) {
  if (token.value >= 0 && token.value < num_tokens) return Status::Ok();
  return Status::InvalidArgument(fmt::format("{}: expected token ids from 0 to {}, found {}", field,
                                             num_tokens - 1, token.value));
}

}  // namespace

// The bounds of penalties and bias keep logits finite however long the output gets.
Status CheckSampling(const SamplingParams& sampling, int num_tokens) {
  RETURN_IF_ERROR(CheckRange("temperature", sampling.temperature, 0, 100));
  RETURN_IF_ERROR(CheckRange("top_p", sampling.top_p, 0, 1));
  RETURN_IF_ERROR(CheckRange("min_p", sampling.min_p, 0, 1));
  RETURN_IF_ERROR(CheckRange("repetition_penalty", sampling.repetition_penalty, 0.01, 100));
  RETURN_IF_ERROR(CheckRange("presence_penalty", sampling.presence_penalty, -100, 100));
  RETURN_IF_ERROR(CheckRange("frequency_penalty", sampling.frequency_penalty, -100, 100));
  RETURN_IF_ERROR(CheckRange("logprobs", sampling.num_logprobs, -1, num_tokens));
  for (const auto& [token, bias] : sampling.logit_bias) {
    RETURN_IF_ERROR(CheckToken("logit_bias", token, num_tokens));
    RETURN_IF_ERROR(CheckRange("logit_bias", bias, -100, 100));
  }
  return Status::Ok();
}

Status CheckSpeculation(const Speculation& speculation, const ModelInfo& info) {
  if (!speculation.is_on()) return Status::Ok();
  const bool is_there = speculation.drafter == DrafterKind::kMtp     ? info.drafts_with_mtp
                        : speculation.drafter == DrafterKind::kModel ? info.drafts_with_model
                                                                     : info.max_drafts > 0;
  if (!is_there) {
    return Status::InvalidArgument(
        fmt::format("speculation.drafter: expected one that was loaded, found {}",
                    DrafterName(speculation.drafter)));
  }
  return CheckRange("speculation.tokens", speculation.max_drafts, 0, info.max_drafts);
}

Status CheckGenerationRequest(const GenerationRequest& request, int num_tokens) {
  RETURN_IF_ERROR(CheckSampling(request.sampling, num_tokens));
  if (request.is_json && request.ignore_eos)
    return Status::InvalidArgument(
        "ignore_eos: expected false where the answer must be JSON, which ends, found true");
  RETURN_IF_ERROR(CheckRange("n", request.num_choices, 1, kMaxChoices));
  if (request.max_tokens != -1)
    RETURN_IF_ERROR(CheckRange("max_tokens", request.max_tokens, 1, INT32_MAX));
  RETURN_IF_ERROR(CheckRange("priority", request.priority, -kMaxPriority, kMaxPriority));
  RETURN_IF_ERROR(CheckRange("deadline_ms", static_cast<double>(request.deadline_ms), 0, 1e12));
  RETURN_IF_ERROR(CheckRange("stop: number of strings", static_cast<double>(request.stop.size()), 0,
                             kMaxStops));
  for (const std::string& stop : request.stop)
    RETURN_IF_ERROR(
        CheckRange("stop: bytes of a string", static_cast<double>(stop.size()), 1, kMaxStopBytes));
  RETURN_IF_ERROR(CheckRange("stop_token_ids: number",
                             static_cast<double>(request.stop_tokens.size()), 0, kMaxStopTokens));
  for (const TokenId token : request.stop_tokens)
    RETURN_IF_ERROR(CheckToken("stop_token_ids", token, num_tokens));
  return Status::Ok();
}

}  // namespace hadal
