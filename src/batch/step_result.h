// What one step produced, in the order of the plan's slices.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace hadal {

struct TokenLogprob {
  TokenId token;
  float logprob = 0.0f;  // log-softmax of the raw logits, before penalties, temperature and filters
};

// Of one drawn token.
struct SampledToken {
  TokenId token;
  float logprob = 0.0f;            // set when the sampling wants logprobs
  int top_begin = 0, num_top = 0;  // into StepResult::top_logprobs, best first
};

enum class SliceError { kNone, kLogitsNotFinite };

struct SliceResult {
  SequenceId id;
  int token_begin = 0, num_tokens = 0;  // into StepResult::tokens: accepted drafts and one new
                                        // token; 0 while the prompt is partly read
  int draft_begin = 0, num_drafts = 0;  // into StepResult::drafts: guesses for the next step
  SliceError error = SliceError::kNone;
};

// What a step had to read from memory.
struct StepTraffic {
  int64_t weight_bytes = 0;  // matrices that took part, once; of routed experts those that were met
  int64_t cache_bytes = 0;   // rows that attention read, once per sequence
};

struct StepResult {
  std::vector<SliceResult> slices;
  std::vector<SampledToken> tokens;
  std::vector<TokenId> drafts;
  std::vector<TokenLogprob> top_logprobs;
  int64_t drafting_us = 0;  // of the step's time, how long the guesses took
  StepTraffic traffic;

  // Keeps the memory.
  void Clear() {
    slices.clear();
    tokens.clear();
    drafts.clear();
    top_logprobs.clear();
    drafting_us = 0;
    traffic = {};
  }
};

}  // namespace hadal
