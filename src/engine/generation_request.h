// What a caller asks of the engine, and the checks of it that need no engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "batch/sampling_params.h"
#include "batch/speculation.h"
#include "runner/model_runner.h"
#include "text/chat_message.h"
#include "text/tokenizer.h"

namespace hadal {

struct GenerationRequest {
  // Token ids, taken as they are; text to be continued, in which added tokens may be written out
  // and to which the begin token is added when it has none; or a conversation for the model's
  // layout.
  std::variant<std::vector<TokenId>, std::string, Conversation> input;
  // Of a conversation: how the answer begins, in the layout's markup (ToolCallOpening). The model
  // reads it as part of the prompt, the reader gets it as part of the answer.
  Prompt opening;
  SamplingParams sampling;                 // its seed is not looked at
  std::optional<uint64_t> seed;            // none: one is drawn and reported
  std::optional<Speculation> speculation;  // none: the engine's own
  int num_choices = 1;                     // answers to the same prompt
  int max_tokens = -1;                     // of each answer; -1: until the context ends
  std::vector<std::string> stop;           // texts that end the answer and are not part of it
  std::vector<TokenId> stop_tokens;        // beside the model's own end tokens
  bool ignore_eos = false;                 // the model's own end tokens are like any other
  int priority = 0;                        // smaller ones first
  int max_reasoning_tokens = -1;  // of a conversation; then reasoning is closed; -1: no limit
  bool is_json = false;           // of a conversation: the answer is one JSON object
  int max_tool_calls = -1;        // the answer ends where one more would begin; -1: no limit
  int64_t deadline_ms = 0;        // from Submit to the end of every answer; 0: none
  std::string cache_salt;         // prompts share cached work only with equal salts
};

// kInvalidArgument with the field's name, what was expected and what was found. `num_tokens`: ids
// below it exist.
Status CheckSampling(const SamplingParams& sampling, int num_tokens);

// kInvalidArgument when an engine whose model is `info` cannot guess like that.
Status CheckSpeculation(const Speculation& speculation, const ModelInfo& info);

// The same for everything but the prompt.
Status CheckGenerationRequest(const GenerationRequest& request, int num_tokens);

}  // namespace hadal
