// What the next token of an answer may be, where that is not free: reasoning that has used up its
// budget is closed, an answer that must be JSON is held to it. Engine thread, but for the
// constructor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "text/json_automaton.h"
#include "text/tokenizer.h"

namespace hadal {

struct AnswerRules {
  int max_reasoning_tokens = -1;  // -1: no limit
  bool is_json = false;           // the answer is one JSON object
  bool may_call_tools = false;    // instead of the answer; calls are free
  bool may_think = false;         // the model may open its reasoning itself
  bool starts_in_reasoning = false;
  std::vector<TokenId> end_tokens;  // that may end the answer
};

class AnswerConstraint {
 public:
  // `tokenizer` must outlive the constraint. num_tokens: ids below it can be drawn.
  AnswerConstraint(const Tokenizer* tokenizer, int num_tokens, AnswerRules rules);

  // One bit for each id that may come next, in words of 64; empty: all may. Valid until the next
  // call. Looks at the whole vocabulary when a place in the JSON is met for the first time.
  std::span<const uint64_t> Allowed();

  // Appends to `masks` a row of words for each place of a step: for the next token, and for the one
  // behind each of `drafts` in case these come. Returns the words of a row; 0, and nothing is
  // appended, when all tokens may come at all places.
  int AppendAllowed(std::span<const TokenId> drafts, std::vector<uint64_t>* masks);

  // The token that came.
  void Accept(TokenId token);

 private:
  using Mask = std::vector<uint64_t>;
  static void Allow(TokenId token, Mask* mask) {
    (*mask)[static_cast<size_t>(token.value) / 64] |= uint64_t{1} << (token.value % 64);
  }
  Mask EmptyMask() const { return Mask((static_cast<size_t>(num_tokens_) + 63) / 64); }
  Mask JsonMask() const;

  const Tokenizer* const tokenizer_;
  const int num_tokens_;
  const AnswerRules rules_;
  const std::optional<TokenId> think_, end_think_, calls_begin_;
  // How far the answer got.
  struct State {
    bool is_in_reasoning = false;
    bool is_free = false;    // tools are being called
    bool has_begun = false;  // the answer behind the reasoning
    int num_reasoning_tokens = 0;
    JsonAutomaton json;
  };
  State state_;
  Mask end_think_mask_;
  std::unordered_map<std::string, Mask> masks_;  // by JsonAutomaton::Key()
};

}  // namespace hadal
