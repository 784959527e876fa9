#include "server/reply_writer.h"

namespace hadal {

std::string_view OpenAiFinishReason(FinishReason finish) {
  switch (finish) {
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    default:
      return "stop";
  }
}

std::string IdWithPrefix(std::string_view prefix, std::string_view request_id) {
  const size_t underscore = request_id.find('_');
  if (underscore != std::string_view::npos) request_id.remove_prefix(underscore + 1);
  return std::string(prefix).append(request_id);
}

void UsageSum::Add(const ResponseEnd& end, int num_reasoning_tokens) {
  if (end.choice_idx == 0) {
    usage_.prompt_tokens += end.usage.prompt_tokens;
    usage_.cached_tokens += end.usage.cached_tokens;
  }
  usage_.completion_tokens += end.usage.completion_tokens;
  usage_.accepted_prediction_tokens += end.usage.accepted_prediction_tokens;
  usage_.rejected_prediction_tokens += end.usage.rejected_prediction_tokens;
  num_reasoning_tokens_ += num_reasoning_tokens;
}

Json UsageSum::OpenAiJson() const {
  return {{"prompt_tokens", usage_.prompt_tokens},
          {"completion_tokens", usage_.completion_tokens},
          {"total_tokens", usage_.prompt_tokens + usage_.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage_.cached_tokens}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", num_reasoning_tokens_},
            {"accepted_prediction_tokens", usage_.accepted_prediction_tokens},
            {"rejected_prediction_tokens", usage_.rejected_prediction_tokens}}},
          {"prompt_cache_hit_tokens", usage_.cached_tokens},
          {"prompt_cache_miss_tokens", usage_.prompt_tokens - usage_.cached_tokens}};
}

}  // namespace hadal
