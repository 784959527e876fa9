// How to pick a token. Plain data; validated where it enters (flags, requests), trusted behind
// that.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.h"

namespace hadal {

struct SamplingParams {
  float temperature = 0.0f;         // 0: greedy; the lowest id wins among equal logits
  int top_k = 0;                    // <= 0: off
  float top_p = 1.0f;               // >= 1: off; 0 keeps one candidate
  float min_p = 0.0f;               // 0: off
  float repetition_penalty = 1.0f;  // over prompt and output; 1: off
  float presence_penalty = 0.0f;    // over the output
  float frequency_penalty = 0.0f;   // over the output
  std::vector<std::pair<TokenId, float>> logit_bias;
  uint64_t seed = 0;
  int num_logprobs = -1;  // -1: none; n >= 0: the chosen token's and the n best ones'

  bool has_penalties() const {
    return repetition_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f;
  }
};

}  // namespace hadal
