#include "server/token_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/utf8.h"
#include "text/markers.h"

namespace hadal {
namespace {

constexpr double kImpossible = -9999.0;  // as OpenAI writes it

bool BeginsCalls(std::string_view added_token) {
  return added_token == markers::kCallsBegin || added_token.find("DSML") != std::string_view::npos;
}

bool IsLineEnds(std::string_view bytes) {
  return !bytes.empty() && bytes.find_first_not_of("\r\n") == std::string_view::npos;
}

Json EntryJson(const Tokenizer* tokenizer, TokenId token, float logprob) {
  Json bytes = Json::array();
  if (tokenizer != nullptr)
    for (const char byte : tokenizer->TokenBytes(token))
      bytes.push_back(static_cast<uint8_t>(byte));
  return {{"token", TokenText(tokenizer, token)},
          {"logprob", JsonLogprob(logprob)},
          {"bytes", std::move(bytes)}};
}

}  // namespace

TokenTrace::TokenTrace(const Tokenizer* tokenizer, bool starts_in_reasoning, bool keeps_logprobs)
    : tokenizer_(tokenizer),
      keeps_logprobs_(keeps_logprobs),
      is_in_reasoning_(starts_in_reasoning) {}

void TokenTrace::AddToken(const SampledToken& token,
                          const std::vector<TokenLogprob>& top_logprobs) {
  if (tokenizer_ != nullptr && tokenizer_->IsAddedToken(token.token)) {
    const std::string_view text = tokenizer_->TokenBytes(token.token);
    if (is_in_reasoning_) ++num_reasoning_tokens_;
    if (text == markers::kThink || text == markers::kEndThink) {
      is_in_reasoning_ = text == markers::kThink;
      return;
    }
    is_in_calls_ |= !is_in_reasoning_ && BeginsCalls(text);
  } else if (is_in_reasoning_) {
    ++num_reasoning_tokens_;
  }
  if (!keeps_logprobs_ || is_in_calls_) return;
  AddTo(is_in_reasoning_ ? &reasoning_ : &content_, token, top_logprobs);
}

void TokenTrace::AddTo(Lane* lane, const SampledToken& token,
                       const std::vector<TokenLogprob>& top_logprobs) {
  const std::string_view bytes = tokenizer_ == nullptr ? "?" : tokenizer_->TokenBytes(token.token);
  // Some layouts set their parts apart by line ends that belong to neither.
  if (lane->token_bytes == 0 && IsLineEnds(bytes)) return;
  TracedToken& traced = lane->waiting.emplace_back();
  traced.token = token.token;
  traced.logprob = token.logprob;
  const auto first = top_logprobs.begin() + token.top_begin;
  traced.top.assign(first, first + token.num_top);
  traced.text_begin = lane->token_bytes;
  lane->token_bytes += bytes.size();
}

void TokenTrace::AddText(MessageDelta::Kind kind, size_t size) {
  if (kind == MessageDelta::Kind::kContent) content_.text_bytes += size;
  if (kind == MessageDelta::Kind::kReasoning) reasoning_.text_bytes += size;
}

std::vector<TracedToken> TokenTrace::Take(Lane* lane) {
  const auto end = std::ranges::find_if(lane->waiting, [lane](const TracedToken& token) {
    return token.text_begin >= lane->text_bytes;
  });
  std::vector<TracedToken> taken(std::make_move_iterator(lane->waiting.begin()),
                                 std::make_move_iterator(end));
  lane->waiting.erase(lane->waiting.begin(), end);
  return taken;
}

double JsonLogprob(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kImpossible;
}

std::string TokenText(const Tokenizer* tokenizer, TokenId token) {
  if (tokenizer == nullptr) return std::to_string(token.value);
  return RepairUtf8(tokenizer->TokenBytes(token));
}

Json ChatLogprobsJson(const Tokenizer* tokenizer, const std::vector<TracedToken>& tokens) {
  Json list = Json::array();
  for (const TracedToken& traced : tokens) {
    Json entry = EntryJson(tokenizer, traced.token, traced.logprob);
    Json& top = entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& one : traced.top)
      top.push_back(EntryJson(tokenizer, one.token, one.logprob));
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace hadal
