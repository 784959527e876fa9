#include "apps/generation_flags.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/types.h"

namespace hadal {
namespace {

// "ID=B". Nothing when it is not of that form.
std::optional<std::pair<TokenId, float>> ParseBias(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  std::pair<TokenId, float> entry;
  const char* const end = text.data() + text.size();
  const char* const middle = text.data() + equals;
  const auto id = std::from_chars(text.data(), middle, entry.first.value);
  const auto bias = std::from_chars(middle + 1, end, entry.second);
  if (id.ec != std::errc() || id.ptr != middle || bias.ec != std::errc() || bias.ptr != end)
    return std::nullopt;
  return entry;
}

// A whole number below 2^64; the library would wrap a sign and cut what is too large.
std::string CheckSeed(const std::string& text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seed);
  if (read.ec == std::errc() && read.ptr == end) return "";
  return fmt::format("expected a number from 0 to 2^64 - 1, found \"{}\"", text);
}

// One value per flag, so that no flag swallows the model's name behind its value.
CLI::Option* OnePerFlag(CLI::Option* option) {
  return option->expected(1)->allow_extra_args(false)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

void AddGenerationFlags(CLI::App* command, GenerationFlags* flags) {
  const std::string group = "Sampling (without them the model's generation_config.json decides)";
  command->add_option("--temperature", flags->temperature, "0 takes the likeliest token always")
      ->check(CLI::Range(0.0, 100.0))
      ->group(group);
  command->add_option("--top-k", flags->top_k, "Draw from the k likeliest tokens (0: all)")
      ->group(group);
  command
      ->add_option("--top-p", flags->top_p,
                   "Draw from the likeliest tokens that reach this "
                   "probability together")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  command
      ->add_option("--min-p", flags->min_p,
                   "Leave out tokens below this fraction of the likeliest one's probability")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  command
      ->add_option("--repetition-penalty", flags->repetition_penalty,
                   "Divides the logits of tokens that occurred, prompt included (1: off)")
      ->group(group);
  command
      ->add_option("--presence-penalty", flags->presence_penalty,
                   "Lowers the logits of tokens of the answer")
      ->group(group);
  command
      ->add_option("--frequency-penalty", flags->frequency_penalty,
                   "Lowers them once per occurrence")
      ->group(group);
  OnePerFlag(command->add_option("--logit-bias", flags->logit_bias,
                                 "Adds to the logit of a token; may be repeated"))
      ->type_name("ID=B")
      ->check([](const std::string& entry) -> std::string {
        if (ParseBias(entry)) return "";
        return fmt::format("expected ID=BIAS, found \"{}\"", entry);
      })
      ->group(group);
  command
      ->add_option("--seed", flags->seed,
                   "The same seed gives the same draws (default: a new one, which is shown)")
      ->check(CheckSeed)
      ->group(group);

  command
      ->add_option("--max-tokens", flags->max_tokens,
                   "Longest answer (default: until the context is full)")
      ->check(CLI::Range(1, INT32_MAX));
  OnePerFlag(command->add_option(
      "--stop", flags->stop, "Text that ends the answer and is not part of it; may be repeated"));
  command->add_flag("--ignore-eos", flags->ignore_eos, "Go on behind the model's end token");
  command
      ->add_option("--logprobs", flags->num_logprobs,
                   "Show log-probabilities, with this many alternatives per token")
      ->check(CLI::Range(0, 1000));
}

GenerationRequest MakeGenerationRequest(const GenerationFlags& flags,
                                        const SamplingParams& defaults) {
  GenerationRequest request;
  SamplingParams& sampling = request.sampling;
  sampling = defaults;
  sampling.temperature = flags.temperature.value_or(defaults.temperature);
  sampling.top_k = flags.top_k.value_or(defaults.top_k);
  sampling.top_p = flags.top_p.value_or(defaults.top_p);
  sampling.min_p = flags.min_p.value_or(defaults.min_p);
  sampling.repetition_penalty = flags.repetition_penalty.value_or(defaults.repetition_penalty);
  sampling.presence_penalty = flags.presence_penalty.value_or(defaults.presence_penalty);
  sampling.frequency_penalty = flags.frequency_penalty.value_or(defaults.frequency_penalty);
  for (const std::string& entry : flags.logit_bias)
    sampling.logit_bias.push_back(*ParseBias(entry));  // checked when it was parsed
  sampling.num_logprobs = flags.num_logprobs;
  request.seed = flags.seed;
  request.stop = flags.stop;
  request.max_tokens = flags.max_tokens;
  request.ignore_eos = flags.ignore_eos;
  return request;
}

}  // namespace hadal
