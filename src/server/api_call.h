// A request of any of the APIs, understood: what the engine shall do, and how the reply looks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "batch/sampling_params.h"
#include "engine/generation_request.h"
#include "text/chat_layout.h"
#include "text/tokenizer.h"

namespace hadal {

// What the APIs need to know of the model that answers.
struct ApiModel {
  std::vector<std::string> names;  // the first is reported when a request names none
  bool checks_names = false;       // a request must name one of them
  int64_t created_s = 0;           // since 1970
  ChatLayout layout = ChatLayout::kV3;
  bool is_chat_model = true;
  SamplingParams default_sampling;
  Speculation default_speculation;
  int max_context_tokens = 0;
  int num_tokens = 0;                    // ids below it may be asked for
  const Tokenizer* tokenizer = nullptr;  // null: the model takes and gives ids only
};

struct ApiCall {
  std::vector<GenerationRequest> requests;  // one for each prompt, at least one
  std::string model;                        // the name that the reply gives
  bool is_streamed = false;
  bool wants_usage = false;  // of a stream
  bool wants_logprobs = false;
  std::vector<std::string> echoes;  // the prompts, when they shall stand before the answers
  Json repeated = Json::object();   // fields that the reply gives back (responses)
  std::string user;                 // who asks, as the client says it; for the log
};

// What a reply says of itself.
struct ReplyInfo {
  std::string id;  // of the request: unique in this process
  std::string model;
  int64_t created_s = 0;  // since 1970
  std::string
      fingerprint;  // of program and model: equal seeds give equal answers while it is equal
};

}  // namespace hadal
