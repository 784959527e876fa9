#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"

namespace hadal {
namespace {

// How far below the best logit, in units of temperature, the best few are looked for first.
constexpr std::array<double, 3> kDepths = {8.0, 20.0, LogitBlocks::kNegligible};
constexpr double kEverything = 1e300;

// The order of choice: larger logits first, equal ones by id.
bool IsBetter(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

bool KeepsAll(const SamplingParams& params, int vocab_size) {
  return (params.top_k <= 0 || params.top_k >= vocab_size) && params.top_p >= 1.0f &&
         params.min_p <= 0.0f;
}

}  // namespace

Sampler::Sampler(int vocab_size)
    : token_limit_(vocab_size),
      blocks_(vocab_size),
      num_seen_(vocab_size),
      num_in_output_(vocab_size) {
  candidates_.reserve(vocab_size);
  raw_.reserve(vocab_size);
  seen_.reserve(vocab_size);
}

void Sampler::SetTokenLimit(int num_tokens) {
  HADAL_CHECK(num_tokens > 0);
  token_limit_ = std::min(num_tokens, static_cast<int>(num_seen_.size()));
}

std::span<float> Sampler::Drawable(const SamplerInput& input) const {
  HADAL_DCHECK(static_cast<int>(input.logits.size()) >= token_limit_);
  return input.logits.first(token_limit_);
}

bool Sampler::Sample(const SamplerInput& input, SampledToken* token,
                     std::vector<TokenLogprob>* top_logprobs) {
  const SamplingParams& params = *input.params;
  if (!Adjust(input)) return false;
  if (params.temperature == 0.0f) {
    token->token = blocks_.Best();
  } else if (KeepsAll(params, token_limit_)) {
    const double total = blocks_.SumWeights(params.temperature);
    const double unit = RandomUnit(params.seed, static_cast<uint64_t>(input.position));
    token->token = blocks_.AtWeight(unit * total, params.temperature);
  } else {
    ChooseCandidates(params);
    token->token = DrawFromCandidates(params, input.position);
  }
  SetLogprobs(input, token, top_logprobs);
  return true;
}

bool Sampler::SampleBy(const SamplerInput& input, const Choose& choose, SampledToken* token,
                       std::vector<TokenLogprob>* top_logprobs) {
  if (!Adjust(input)) return false;
  FindCandidates(*input.params);
  token->token = choose(candidates_);
  SetLogprobs(input, token, top_logprobs);
  return true;
}

// Bias, penalties and mask. False when the logits are not finite, before or behind them.
bool Sampler::Adjust(const SamplerInput& input) {
  const SamplingParams& params = *input.params;
  const std::span<float> logits = Drawable(input);
  if (!blocks_.Read(logits)) return false;
  is_adjusted_ = !params.logit_bias.empty() || params.has_penalties() || !input.allowed.empty();
  if (!is_adjusted_) return true;
  if (params.num_logprobs >= 0) raw_.assign(logits.begin(), logits.end());
  AddBias(params, logits);
  ApplyPenalties(input, logits);
  if (!input.allowed.empty()) ApplyMask(input.allowed, logits);
  return blocks_.Read(logits);
}

const std::vector<Sampler::Candidate>& Sampler::Filter(const SamplerInput& input) {
  HADAL_CHECK(Adjust(input));
  FindCandidates(*input.params);
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  for (Candidate& candidate : candidates_) candidate.weight /= total;
  return candidates_;
}

void Sampler::ApplyMask(std::span<const uint64_t> allowed, std::span<float> logits) const {
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool may_come = i / 64 < allowed.size() && (allowed[i / 64] >> (i % 64) & 1) != 0;
    if (!may_come) logits[i] = -std::numeric_limits<float>::infinity();
  }
}

void Sampler::AddBias(const SamplingParams& params, std::span<float> logits) const {
  for (const auto& [id, bias] : params.logit_bias)
    if (id.value >= 0 && id.value < token_limit_) logits[id.value] += bias;
}

void Sampler::Count(std::span<const TokenId> tokens, int first_position, int num_prompt_tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = tokens[i].value;
    if (id < 0 || id >= token_limit_) continue;
    if (num_seen_[id]++ == 0) seen_.push_back(tokens[i]);
    if (first_position + static_cast<int>(i) >= num_prompt_tokens) ++num_in_output_[id];
  }
}

// Repetition: positive logits are divided, negative ones multiplied (Keskar et al., "CTRL", 2019).
// Frequency and presence: subtracted, once per occurrence and once per token of the output.
void Sampler::ApplyPenalties(const SamplerInput& input, std::span<float> logits) {
  const SamplingParams& params = *input.params;
  if (!params.has_penalties()) return;
  Count(input.history, 0, input.num_prompt_tokens);
  Count(input.recent, static_cast<int>(input.history.size()), input.num_prompt_tokens);
  for (const TokenId token : seen_) {
    float* logit = &logits[token.value];
    *logit = *logit > 0 ? *logit / params.repetition_penalty : *logit * params.repetition_penalty;
    if (const int count = num_in_output_[token.value]; count > 0) {
      *logit -= params.frequency_penalty * static_cast<float>(count) + params.presence_penalty;
    }
    num_seen_[token.value] = num_in_output_[token.value] = 0;
  }
  seen_.clear();
}

void Sampler::FindCandidates(const SamplingParams& params) {
  if (params.temperature > 0.0f) return ChooseCandidates(params);
  const TokenId best = blocks_.Best();
  candidates_.assign(1, {1.0, blocks_.max(), best.value});
}

// Most filters leave a few tokens near the best one: deeper ones are looked at only where those do
// not suffice.
void Sampler::ChooseCandidates(const SamplingParams& params) {
  const bool is_top_p = params.top_p < 1.0f;
  const bool is_top_k = params.top_k > 0 && params.top_k < token_limit_;
  const double first = KeepsAll(params, token_limit_) ? kDepths.back() : kDepths.front();
  for (const double depth : kDepths) {
    const bool is_last = depth == kDepths.back();
    if (depth < first) continue;
    const float lowest = Collect(depth * params.temperature);
    if (is_top_k && !is_last && candidates_.size() < static_cast<size_t>(params.top_k)) continue;
    const bool is_cut = is_top_k && candidates_.size() > static_cast<size_t>(params.top_k);
    if (is_cut) KeepBest(static_cast<size_t>(params.top_k));
    double total = 0;
    for (Candidate& candidate : candidates_) {
      candidate.weight =
          std::exp((static_cast<double>(candidate.logit) - blocks_.max()) / params.temperature);
      total += candidate.weight;
    }
    if (is_top_p) {
      if (!is_top_k && !is_last) total += blocks_.SumWeights(params.temperature, lowest);
      if (!KeepTopP(params.top_p * total, is_cut) && !is_last) continue;
    }
    if (params.min_p > 0.0f) {
      const double least = std::min<double>(params.min_p, 1.0);
      if (!is_top_p && !is_top_k && !is_last && least < std::exp(-depth)) continue;
      std::erase_if(candidates_, [least](const Candidate& c) { return c.weight < least; });
    }
    if (is_cut || is_top_p) std::ranges::sort(candidates_, {}, &Candidate::id);
    return;
  }
}

// Makes the tokens of at most `depth` below the best one the candidates. Returns the least logit
// that counts.
float Sampler::Collect(double depth) {
  const float lowest = static_cast<float>(std::max<double>(
      blocks_.max() - depth, static_cast<double>(std::numeric_limits<float>::lowest())));
  candidates_.clear();
  blocks_.VisitFrom(lowest, [this](int32_t id, float logit) {
    candidates_.push_back({0, logit, id});
  });
  return lowest;
}

// Leaves the best `count` candidates, best first. REQUIRES: count <= candidates_.size().
void Sampler::KeepBest(size_t count) {
  const auto end = candidates_.begin() + static_cast<int64_t>(count);
  if (end != candidates_.end())
    std::nth_element(candidates_.begin(), end, candidates_.end(), IsBetter);
  candidates_.erase(end, candidates_.end());
  std::ranges::sort(candidates_, IsBetter);
}

// Leaves the fewest best candidates whose weights reach `wanted`, at least one; false when all
// together do not. Orders them in growing pieces, because a few usually suffice.
bool Sampler::KeepTopP(double wanted, bool is_ordered) {
  double mass = 0;
  const auto begin = candidates_.begin();
  const int64_t size = static_cast<int64_t>(candidates_.size());
  int64_t num_ordered = is_ordered ? size : 0, piece = 64;
  for (int64_t i = 0; i < size; ++i) {
    if (i == num_ordered) {
      num_ordered = std::min(size, num_ordered + piece);
      piece *= 4;
      if (num_ordered < size)
        std::nth_element(begin + i, begin + num_ordered, candidates_.end(), IsBetter);
      std::sort(begin + i, begin + num_ordered, IsBetter);
    }
    mass += begin[i].weight;
    if (mass >= wanted) {
      candidates_.erase(begin + i + 1, candidates_.end());
      return true;
    }
  }
  return false;
}

// The inverse of the distribution function over ascending ids.
TokenId Sampler::DrawFromCandidates(const SamplingParams& params, int position) const {
  double total = 0, mass = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const double target = RandomUnit(params.seed, static_cast<uint64_t>(position)) * total;
  for (const Candidate& candidate : candidates_) {
    mass += candidate.weight;
    if (mass > target) return {candidate.id};
  }
  return {candidates_.back().id};  // the sum was rounded up to the target
}

void Sampler::SetLogprobs(const SamplerInput& input, SampledToken* token,
                          std::vector<TokenLogprob>* top_logprobs) {
  token->logprob = 0;
  token->top_begin = static_cast<int>(top_logprobs->size());
  token->num_top = 0;
  const int num_logprobs = input.params->num_logprobs;
  if (num_logprobs < 0) return;
  const std::span<const float> raw = is_adjusted_ ? std::span<const float>(raw_) : Drawable(input);
  if (is_adjusted_) HADAL_CHECK(blocks_.Read(raw));  // it was finite before
  const double log_sum = blocks_.max() + std::log(blocks_.SumWeights(1));
  token->logprob = static_cast<float>(raw[token->token.value] - log_sum);
  if (num_logprobs == 0) return;
  for (const double depth : {kDepths[0], kDepths[1], kEverything}) {
    Collect(depth);
    if (candidates_.size() >= static_cast<size_t>(num_logprobs)) break;
  }
  KeepBest(std::min(candidates_.size(), static_cast<size_t>(num_logprobs)));
  bool has_drawn = false;
  for (const Candidate& candidate : candidates_) {
    has_drawn |= candidate.id == token->token.value;
    top_logprobs->push_back({TokenId{candidate.id}, static_cast<float>(candidate.logit - log_sum)});
  }
  if (!has_drawn) top_logprobs->push_back({token->token, token->logprob});
  token->num_top = static_cast<int>(top_logprobs->size()) - token->top_begin;
}

}  // namespace hadal
