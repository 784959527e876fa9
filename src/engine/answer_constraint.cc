#include "engine/answer_constraint.h"

#include <utility>

#include "text/markers.h"

namespace hadal {
namespace {

// 16 KB each at a vocabulary of 129,280.
constexpr size_t kMaxMasks = 128;

}  // namespace

AnswerConstraint::AnswerConstraint(const Tokenizer* tokenizer, int num_tokens, AnswerRules rules)
    : tokenizer_(tokenizer),
      num_tokens_(num_tokens),
      rules_(std::move(rules)),
      think_(tokenizer->FindAddedToken(markers::kThink)),
      end_think_(tokenizer->FindAddedToken(markers::kEndThink)),
      calls_begin_(tokenizer->FindAddedToken(markers::kCallsBegin)),
      state_{.is_in_reasoning = rules_.starts_in_reasoning, .json = {}} {
  if (!end_think_) return;
  end_think_mask_ = EmptyMask();
  Allow(*end_think_, &end_think_mask_);
}

std::span<const uint64_t> AnswerConstraint::Allowed() {
  if (state_.is_in_reasoning) {
    const bool must_close = rules_.max_reasoning_tokens >= 0 &&
                            state_.num_reasoning_tokens >= rules_.max_reasoning_tokens;
    return must_close ? std::span<const uint64_t>(end_think_mask_) : std::span<const uint64_t>();
  }
  if (!rules_.is_json || state_.is_free) return {};
  std::string key = state_.json.Key();
  const auto known = masks_.find(key);
  if (known != masks_.end()) return known->second;
  if (masks_.size() >= kMaxMasks) masks_.clear();
  return masks_.emplace(std::move(key), JsonMask()).first->second;
}

int AnswerConstraint::AppendAllowed(std::span<const TokenId> drafts, std::vector<uint64_t>* masks) {
  const size_t num_words = (static_cast<size_t>(num_tokens_) + 63) / 64;
  const size_t begin = masks->size();
  const State now = state_;
  bool is_free = true, may_come = true;
  for (size_t i = 0; i <= drafts.size(); ++i) {
    // Nothing is drawn behind a draft that may not come, so its row is not looked at.
    const std::span<const uint64_t> allowed = may_come ? Allowed() : std::span<const uint64_t>();
    is_free &= allowed.empty();
    if (allowed.empty()) {
      masks->insert(masks->end(), num_words, ~uint64_t{0});
    } else {
      masks->insert(masks->end(), allowed.begin(), allowed.end());
    }
    if (i == drafts.size()) break;
    const auto id = static_cast<size_t>(drafts[i].value);
    may_come &= allowed.empty() || (allowed[id / 64] >> (id % 64) & 1) != 0;
    if (may_come) Accept(drafts[i]);
  }
  state_ = now;
  if (!is_free) return static_cast<int>(num_words);
  masks->resize(begin);
  return 0;
}

// Control tokens have a spelling that would fit into a string, but they are no text.
AnswerConstraint::Mask AnswerConstraint::JsonMask() const {
  Mask mask = EmptyMask();
  if (state_.json.is_done()) {
    for (const TokenId token : rules_.end_tokens) Allow(token, &mask);
    return mask;
  }
  for (TokenId token{0}; token.value < num_tokens_; ++token.value) {
    const std::string_view bytes = tokenizer_->TokenBytes(token);
    if (bytes.empty() || tokenizer_->IsAddedToken(token)) continue;
    JsonAutomaton next = state_.json;
    if (next.Push(bytes)) Allow(token, &mask);
  }
  if (state_.has_begun) return mask;
  if (rules_.may_call_tools && calls_begin_) Allow(*calls_begin_, &mask);
  if (rules_.may_think && think_ && state_.num_reasoning_tokens == 0) Allow(*think_, &mask);
  return mask;
}

void AnswerConstraint::Accept(TokenId token) {
  if (state_.is_in_reasoning) {
    ++state_.num_reasoning_tokens;
    if (token == end_think_) state_.is_in_reasoning = false;
    return;
  }
  if (!state_.has_begun && think_ && token == *think_) {
    state_.is_in_reasoning = true;
    return;
  }
  state_.is_free |= !state_.has_begun && calls_begin_ && token == *calls_begin_;
  state_.has_begun = true;
  if (rules_.is_json && !state_.is_free)
    state_.is_free |= !state_.json.Push(tokenizer_->TokenBytes(token));
}

}  // namespace hadal
