// How far a request got. Owned by the scheduler, engine thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "cache/kv_cache_manager.h"
#include "sched/draft_governor.h"
#include "sched/request.h"

namespace hadal {

enum class SequenceState { kWaiting, kRunning };

// One inequality carries the design: num_computed <= tokens.size(), and every step moves it towards
// equality. A step that reaches it draws the next token.
class Sequence {
 public:
  // arrival: counts up. due_us: see ComesBefore. max_total_tokens: prompt and output together, at
  // least one more than the prompt.
  Sequence(Request request, int64_t arrival, int64_t due_us, int max_total_tokens);

  const Request& request() const { return request_; }
  SequenceId id() const { return request_.id; }
  int64_t arrival() const { return arrival_; }
  int64_t due_us() const { return due_us_; }
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

  // How many drafts could be of use to a step that knows `num_known` tokens when it begins: behind
  // the last accepted one a token is drawn.
  int NumUsefulDrafts(int num_known) const {
    return std::max(0, max_total_tokens_ - num_known - 1);
  }

  // State that the scheduler moves.
  SequenceState state = SequenceState::kWaiting;
  int num_computed = 0;
  BlockTable table;
  std::vector<TokenId> drafts;  // guesses for the tokens that follow, not yet verified
  int num_wanted_drafts = 0;    // for the step behind the planned one
  DraftRecord draft_record;
  int num_shown_tokens = 0;    // tokens that plans have told, in their slices or as history
  int num_cached_tokens = -1;  // not computed by itself at its first admission; -1 before that
  // The rows of [first_saved, num_saved) lie outside the cache: after preemption, or brought along
  // by the request. num_saved is 0 while it runs.
  int first_saved = 0, num_saved = 0;

 private:
  const Request request_;
  const int64_t arrival_, due_us_;
  const int max_total_tokens_;
  std::vector<TokenId> tokens_;
};

// The order of admission, of reading prompts, and of keeping when blocks are short: by the time at
// which a sequence is due, then by arrival. It is due at its arrival, and SchedulerLimits::aging_us
// later for each step of its priority. Within a priority this is the order of arrival, and nobody
// starves: only those overtake a sequence that came before it was due. As the order of two
// sequences never changes, nothing has to be sorted again as they age.
struct ComesBefore {
  bool operator()(const Sequence* a, const Sequence* b) const {
    if (a->due_us() != b->due_us()) return a->due_us() < b->due_us();
    return a->arrival() < b->arrival();
  }
};

}  // namespace hadal
