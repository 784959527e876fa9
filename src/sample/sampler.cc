#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/random.h"

namespace hadal {
namespace {

// Tokens this far below the best one, in units of temperature, are left out: all of a vocabulary
// together (1e5 * exp(-50) = 2e-17) has less probability than one step of the random number
// (2^-53), so no draw could fall on them, and most of the vocabulary needs no exponential.
constexpr double kNegligible = 50.0;

// The order of choice: larger logits first, equal ones by id.
bool IsBetter(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

struct RowSummary {
  float max = -std::numeric_limits<float>::infinity();
  bool is_finite = true;  // no NaN, and the maximum is finite
};

RowSummary Summarize(std::span<const float> logits) {
  RowSummary summary;
  bool has_nan = false;
  for (const float logit : logits) {
    has_nan |= logit != logit;
    summary.max = std::max(summary.max, logit);
  }
  summary.is_finite = !has_nan && std::isfinite(summary.max);
  return summary;
}

TokenId Best(std::span<const float> logits) {
  return {static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin())};
}

double LogSumExp(std::span<const float> logits, double max) {
  double sum = 0;
  for (const float logit : logits)
    if (logit >= max - kNegligible) sum += std::exp(logit - max);
  return max + std::log(sum);
}

}  // namespace

Sampler::Sampler(int vocab_size)
    : token_limit_(vocab_size), num_seen_(vocab_size), num_in_output_(vocab_size) {
  HADAL_CHECK(vocab_size > 0);
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
  const auto draw = [&](std::span<const Candidate> candidates) {
    // Greedy: the only candidate.
    return params.temperature == 0.0f ? TokenId{candidates.front().id}
                                      : DrawFromFiltered(params, input.position);
  };
  return SampleBy(input, std::cref(draw), token, top_logprobs);  // by reference: no allocation
}

bool Sampler::SampleBy(const SamplerInput& input, const Choose& choose, SampledToken* token,
                       std::vector<TokenLogprob>* top_logprobs) {
  const SamplingParams& params = *input.params;
  const std::span<float> logits = Drawable(input);
  if (!Summarize(logits).is_finite) return false;
  const bool is_masked = !input.allowed.empty();
  const bool is_adjusted = !params.logit_bias.empty() || params.has_penalties() || is_masked;
  const bool wants_logprobs = params.num_logprobs >= 0;
  if (wants_logprobs && is_adjusted) raw_.assign(logits.begin(), logits.end());
  AddBias(params, logits);
  ApplyPenalties(input, logits);
  if (is_masked) {
    ApplyMask(input.allowed, logits);
    if (!Summarize(logits).is_finite) return false;
  }
  FindCandidates(params, logits);
  token->token = choose(candidates_);
  token->logprob = 0;
  token->top_begin = static_cast<int>(top_logprobs->size());
  token->num_top = 0;
  if (wants_logprobs) {
    AppendLogprobs(is_adjusted ? std::span<const float>(raw_) : logits, params.num_logprobs, token,
                   top_logprobs);
  }
  return true;
}

const std::vector<Sampler::Candidate>& Sampler::Filter(const SamplerInput& input) {
  const std::span<float> logits = Drawable(input);
  AddBias(*input.params, logits);
  ApplyPenalties(input, logits);
  if (!input.allowed.empty()) ApplyMask(input.allowed, logits);
  FindCandidates(*input.params, logits);
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

void Sampler::FindCandidates(const SamplingParams& params, std::span<const float> logits) {
  if (params.temperature > 0.0f) return ChooseCandidates(params, logits);
  const TokenId best = Best(logits);
  candidates_.assign(1, {1.0, logits[best.value], best.value});
}

void Sampler::ChooseCandidates(const SamplingParams& params, std::span<const float> logits) {
  const double temperature = params.temperature;
  const double max = Summarize(logits).max;
  const double lowest = std::max(max - kNegligible * temperature,
                                 static_cast<double>(std::numeric_limits<float>::lowest()));
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= lowest) candidates_.push_back({0, logits[i], static_cast<int32_t>(i)});

  const size_t num_before = candidates_.size();
  const bool is_cut = params.top_k > 0 && static_cast<size_t>(params.top_k) < num_before;
  if (is_cut) KeepBest(static_cast<size_t>(params.top_k));
  for (Candidate& candidate : candidates_)
    candidate.weight = std::exp((candidate.logit - max) / temperature);
  if (params.top_p < 1.0f) KeepTopP(params.top_p, is_cut);
  if (params.min_p > 0.0f) {
    const double least = std::min<double>(params.min_p, 1.0);
    std::erase_if(candidates_, [least](const Candidate& c) { return c.weight < least; });
  }
  if (is_cut || params.top_p < 1.0f) std::ranges::sort(candidates_, {}, &Candidate::id);
}

// Leaves the best `count` candidates, best first. REQUIRES: count <= candidates_.size().
void Sampler::KeepBest(size_t count) {
  const auto end = candidates_.begin() + static_cast<int64_t>(count);
  if (end != candidates_.end())
    std::nth_element(candidates_.begin(), end, candidates_.end(), IsBetter);
  candidates_.erase(end, candidates_.end());
  std::ranges::sort(candidates_, IsBetter);
}

// Leaves the fewest best candidates whose probabilities reach top_p, at least one. Orders them in
// growing pieces, because a few usually suffice.
void Sampler::KeepTopP(double top_p, bool is_ordered) {
  double total = 0, mass = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
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
    if (mass >= top_p * total) {
      candidates_.erase(begin + i + 1, candidates_.end());
      return;
    }
  }
}

// The inverse of the distribution function over ascending ids.
TokenId Sampler::DrawFromFiltered(const SamplingParams& params, int position) const {
  double total = 0, mass = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const double target = RandomUnit(params.seed, static_cast<uint64_t>(position)) * total;
  for (const Candidate& candidate : candidates_) {
    mass += candidate.weight;
    if (mass > target) return {candidate.id};
  }
  return {candidates_.back().id};  // the sum was rounded up to the target
}

void Sampler::AppendLogprobs(std::span<const float> raw, int num_logprobs, SampledToken* token,
                             std::vector<TokenLogprob>* top_logprobs) {
  const RowSummary summary = Summarize(raw);
  const double log_sum = LogSumExp(raw, summary.max);
  token->logprob = static_cast<float>(raw[token->token.value] - log_sum);
  if (num_logprobs == 0) return;
  candidates_.clear();
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] >= std::numeric_limits<float>::lowest())
      candidates_.push_back({0, raw[i], static_cast<int32_t>(i)});
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
