// Tokens of one answer beside its text: which belong to the reasoning, and the log-probabilities of
// those whose text the reader has. Text may come later than its tokens, and what a stop string cut
// off never comes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/response_stream.h"
#include "text/tokenizer.h"

namespace hadal {

// One token with its log-probabilities.
struct TracedToken {
  TokenId token;
  float logprob = 0;
  std::vector<TokenLogprob> top;
  size_t text_begin = 0;  // bytes of text of its kind before it
};

class TokenTrace {
 public:
  // `tokenizer` must outlive the trace; null: every token belongs to the answer.
  TokenTrace(const Tokenizer* tokenizer, bool starts_in_reasoning, bool keeps_logprobs);

  // Tokens of this choice, and then the text of this choice in the same chunk.
  void AddToken(const SampledToken& token, const std::vector<TokenLogprob>& top_logprobs);
  void AddText(MessageDelta::Kind kind, size_t size);

  // Tokens whose text is out and that were not taken yet.
  std::vector<TracedToken> TakeContent() { return Take(&content_); }
  std::vector<TracedToken> TakeReasoning() { return Take(&reasoning_); }

  int num_reasoning_tokens() const { return num_reasoning_tokens_; }

 private:
  struct Lane {
    std::vector<TracedToken> waiting;
    size_t token_bytes = 0, text_bytes = 0;
  };
  void AddTo(Lane* lane, const SampledToken& token, const std::vector<TokenLogprob>& top_logprobs);
  static std::vector<TracedToken> Take(Lane* lane);

  const Tokenizer* const tokenizer_;
  const bool keeps_logprobs_;
  bool is_in_reasoning_;
  bool is_in_calls_ = false;
  int num_reasoning_tokens_ = 0;
  Lane content_, reasoning_;
};

// As chat replies spell them: {"token", "logprob", "bytes", "top_logprobs": [{...}]}.
Json ChatLogprobsJson(const Tokenizer* tokenizer, const std::vector<TracedToken>& tokens);

// A finite number for JSON: impossible tokens have minus infinity.
double JsonLogprob(float logprob);

// The token's text for people; not valid UTF-8 becomes U+FFFD.
std::string TokenText(const Tokenizer* tokenizer, TokenId token);

}  // namespace hadal
