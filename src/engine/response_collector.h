// Joins the chunks of a response to whole answers, one per choice. For readers that want the end
// result: commands, plain (not streamed) replies, tests.
#pragma once

#include <string>
#include <vector>

#include "engine/response_stream.h"
#include "text/chat_message.h"

namespace hadal {

struct CollectedChoice {
  std::string reasoning, content;
  std::vector<ToolCall> tool_calls;
  std::vector<SampledToken> tokens;  // alternatives: into top_logprobs
  std::vector<TokenLogprob> top_logprobs;
  ResponseEnd end;
};

class ResponseCollector {
 public:
  explicit ResponseCollector(int num_choices) : choices_(static_cast<size_t>(num_choices)) {}

  void Add(const ResponseChunk& chunk);
  // Reads `stream` to its end.
  void ReadAll(ResponseStream* stream);

  const std::vector<CollectedChoice>& choices() const { return choices_; }

 private:
  std::vector<CollectedChoice> choices_;
};

}  // namespace hadal
