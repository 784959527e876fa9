// Flags of the commands that generate text: how to draw, when to stop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "batch/sampling_params.h"
#include "engine/generation_request.h"

namespace hadal {

// What was said on the command line; what was not said is the model's own setting.
struct GenerationFlags {
  std::optional<float> temperature, top_p, min_p;
  std::optional<int> top_k;
  std::optional<float> repetition_penalty, presence_penalty, frequency_penalty;
  std::vector<std::string> logit_bias;  // each "ID=B"
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  int max_tokens = -1;
  int num_logprobs = -1;
  bool ignore_eos = false;
};

// The sampling flags of all commands, and --max-tokens, --stop, --ignore-eos, --logprobs, --seed.
void AddGenerationFlags(CLI::App* command, GenerationFlags* flags);

// A request without its prompt: `defaults` where the flags say nothing.
GenerationRequest MakeGenerationRequest(const GenerationFlags& flags,
                                        const SamplingParams& defaults);

}  // namespace hadal
