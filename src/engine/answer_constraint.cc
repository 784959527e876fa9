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
      is_in_reasoning_(rules_.starts_in_reasoning) {
  if (!end_think_) return;
  end_think_mask_ = EmptyMask();
  Allow(*end_think_, &end_think_mask_);
}

std::span<const uint64_t> AnswerConstraint::Allowed() {
  if (is_in_reasoning_) {
    const bool must_close =
        rules_.max_reasoning_tokens >= 0 && num_reasoning_tokens_ >= rules_.max_reasoning_tokens;
    return must_close ? std::span<const uint64_t>(end_think_mask_) : std::span<const uint64_t>();
  }
  if (!rules_.is_json || is_free_) return {};
  std::string key = json_.Key();
  const auto known = masks_.find(key);
  if (known != masks_.end()) return known->second;
  if (masks_.size() >= kMaxMasks) masks_.clear();
  return masks_.emplace(std::move(key), JsonMask()).first->second;
}

// Control tokens have a spelling that would fit into a string, but they are no text.
AnswerConstraint::Mask AnswerConstraint::JsonMask() const {
  Mask mask = EmptyMask();
  if (json_.is_done()) {
    for (const TokenId token : rules_.end_tokens) Allow(token, &mask);
    return mask;
  }
  for (TokenId token{0}; token.value < num_tokens_; ++token.value) {
    const std::string_view bytes = tokenizer_->TokenBytes(token);
    if (bytes.empty() || tokenizer_->IsAddedToken(token)) continue;
    JsonAutomaton next = json_;
    if (next.Push(bytes)) Allow(token, &mask);
  }
  if (has_begun_) return mask;
  if (rules_.may_call_tools && calls_begin_) Allow(*calls_begin_, &mask);
  if (rules_.may_think && think_ && num_reasoning_tokens_ == 0) Allow(*think_, &mask);
  return mask;
}

void AnswerConstraint::Accept(TokenId token) {
  if (is_in_reasoning_) {
    ++num_reasoning_tokens_;
    if (token == end_think_) is_in_reasoning_ = false;
    return;
  }
  if (!has_begun_ && think_ && token == *think_) {
    is_in_reasoning_ = true;
    return;
  }
  is_free_ |= !has_begun_ && calls_begin_ && token == *calls_begin_;
  has_begun_ = true;
  if (rules_.is_json && !is_free_) is_free_ |= !json_.Push(tokenizer_->TokenBytes(token));
}

}  // namespace hadal
