// How far a request got. Owned by the scheduler, engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "cache/kv_cache_manager.h"
#include "sched/request.h"

namespace hadal {

enum class SequenceState { kWaiting, kRunning };

// One inequality carries the design: num_computed <= tokens.size(), and every step moves it towards
// equality. A step that reaches it draws the next token.
class Sequence {
 public:
  // max_total_tokens: prompt and output together, at least one more than the prompt.
  Sequence(Request request, int64_t arrival, int max_total_tokens);

  const Request& request() const { return request_; }
  SequenceId id() const { return request_.id; }
  int64_t arrival() const { return arrival_; }
  std::span<const TokenId> tokens() const { return tokens_; }  // prompt, then output
  int num_tokens() const { return static_cast<int>(tokens_.size()); }
  int num_prompt_tokens() const { return static_cast<int>(request_.prompt.size()); }
  int num_output_tokens() const { return num_tokens() - num_prompt_tokens(); }
  // Tokens whose cache rows are still to be computed; 1 while decoding.
  int num_unread() const { return num_tokens() - num_computed; }
  // Has more to compute than its last token: the prompt, or everything again after preemption.
  bool is_reading() const { return num_unread() > 1; }
  bool has_read_prompt() const { return num_computed >= num_prompt_tokens(); }

  // Takes memory for all the tokens that may come, so that no step has to.
  void ReserveMemory(int block_tokens);

  // Appends one token of the output. Returns how that ends the sequence, or kNone. A stop token is
  // not appended.
  FinishReason Append(TokenId token);

  // Drafts that could still be part of the output; the rest is dropped.
  void SetDrafts(std::span<const TokenId> drafts);

  // State that the scheduler moves.
  SequenceState state = SequenceState::kWaiting;
  int num_computed = 0;
  BlockTable table;
  std::vector<TokenId> drafts;  // guesses for the tokens that follow, not yet verified
  int num_cached_tokens = -1;   // shared from others when it was first admitted; -1 before that

 private:
  const Request request_;
  const int64_t arrival_;
  const int max_total_tokens_;
  std::vector<TokenId> tokens_;
};

// The order of admission, and of keeping when blocks are short: priority, then arrival.
struct ComesBefore {
  bool operator()(const Sequence* a, const Sequence* b) const {
    if (a->request().priority != b->request().priority)
      return a->request().priority < b->request().priority;
    return a->arrival() < b->arrival();
  }
};

}  // namespace hadal
