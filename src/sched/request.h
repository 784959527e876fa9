// What was asked of the engine: one sequence to be generated. Never changes after Scheduler::Add.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "base/types.h"
#include "batch/sampling_params.h"
#include "batch/speculation.h"

namespace hadal {

enum class FinishReason {
  kNone,       // goes on
  kStop,       // a stop token or a stop string
  kLength,     // max_tokens, or the end of the context
  kToolCalls,  // stopped, and the text calls tools
  kError,
  kCancelled,
};

struct Request {
  SequenceId id;
  std::vector<TokenId> prompt;  // at least one token
  SamplingParams sampling;
  Speculation speculation;
  int max_tokens = -1;               // of the output; -1: until the context ends
  std::vector<TokenId> stop_tokens;  // end the sequence and are not part of the output
  int priority = 0;                  // smaller ones first; among equals the earlier arrival
  int64_t arrival_us = 0;            // on a clock that never goes back
  int64_t deadline_us = 0;           // on the same clock; 0: none
  // A sequence with the same prompt that arrived before, or -1: this one starts when that one has
  // read the prompt, and shares its blocks.
  SequenceId prompt_leader;
  Hash128 cache_salt;  // prefixes are shared only within a salt
  // The rows of prompt positions [first_saved_token, num_saved_tokens) are kept by the caller, who
  // can copy them in (BatchPlan::restores). Whole blocks, never the last token. They are of use
  // only while the tokens before them are in the cache.
  int first_saved_token = 0, num_saved_tokens = 0;
};

}  // namespace hadal
