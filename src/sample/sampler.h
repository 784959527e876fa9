// Logits to token: bias, penalties, temperature, filters, one draw. docs/engine.md has the order.
// The draw is a function of the logits, the parameters, the seed and the position alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/types.h"
#include "batch/sampling_params.h"
#include "batch/step_result.h"
#include "sample/logit_blocks.h"

namespace hadal {

// What a draw depends on. History counts only when the parameters have penalties.
struct SamplerInput {
  std::span<float> logits;  // [rows of the head]; bias and penalties change it in place
  const SamplingParams* params = nullptr;
  int position = 0;                       // that the drawn token will take
  std::span<const TokenId> history = {};  // tokens at positions [0, history.size())
  std::span<const TokenId> recent = {};   // the tokens behind them, up to the drawn one
  int num_prompt_tokens = 0;  // positions below it are prompt: only repetition counts them
  std::span<const uint64_t> allowed = {};  // bit i: id i may be drawn; empty: every id may
};

// One thread at a time. Holds scratch for the largest row, so that drawing allocates nothing.
class Sampler {
 public:
  // vocab_size: rows of the head. All of them may be drawn until SetTokenLimit.
  explicit Sampler(int vocab_size);

  // Ids at or above it have no token and are never drawn, counted or listed (specification, 3.1).
  void SetTokenLimit(int num_tokens);

  // Draws one token. The alternatives that the parameters ask for are appended to `top_logprobs`,
  // best first: the best `num_logprobs` possible tokens, and behind them the drawn one if it is not
  // among them (for num_logprobs 0: none). Logprobs are the log-softmax of the logits as given.
  // False when the logits are not finite: a NaN, +inf, or no possible token at all (-inf marks an
  // impossible one), or none that may be drawn.
  [[nodiscard]] bool Sample(const SamplerInput& input, SampledToken* token,
                            std::vector<TokenLogprob>* top_logprobs);

  struct Candidate {
    double weight = 0;  // after the softmax's maximum was taken out; the best one's is 1
    float logit = 0;
    int32_t id = 0;
  };

  // The same with another way to draw: choose(candidates) returns one of the ids that the filters
  // leave, which come in their order.
  using Choose = std::function<TokenId(std::span<const Candidate> candidates)>;
  [[nodiscard]] bool SampleBy(const SamplerInput& input, const Choose& choose, SampledToken* token,
                              std::vector<TokenLogprob>* top_logprobs);

  // The tokens that the filters leave, in the order of their ids, with probabilities that sum to
  // one: what Sample() draws from. The logits must be finite.
  const std::vector<Candidate>& Filter(const SamplerInput& input);

 private:
  std::span<float> Drawable(const SamplerInput& input) const;
  bool Adjust(const SamplerInput& input);
  void ApplyMask(std::span<const uint64_t> allowed, std::span<float> logits) const;
  void AddBias(const SamplingParams& params, std::span<float> logits) const;
  void ApplyPenalties(const SamplerInput& input, std::span<float> logits);
  void Count(std::span<const TokenId> tokens, int first_position, int num_prompt_tokens);
  void FindCandidates(const SamplingParams& params);
  void ChooseCandidates(const SamplingParams& params);
  float Collect(double depth);
  void KeepBest(size_t count);
  bool KeepTopP(double wanted, bool is_ordered);
  TokenId DrawFromCandidates(const SamplingParams& params, int position) const;
  void SetLogprobs(const SamplerInput& input, SampledToken* token,
                   std::vector<TokenLogprob>* top_logprobs);

  int token_limit_;
  LogitBlocks blocks_;
  bool is_adjusted_ = false;  // bias, penalties or a mask changed the row
  std::vector<Candidate> candidates_;
  std::vector<float> raw_;              // the logits as given, when logprobs are wanted
  std::vector<int32_t> num_seen_;       // by id: occurrences in prompt and output
  std::vector<int32_t> num_in_output_;  // by id
  std::vector<TokenId> seen_;           // ids whose counts are not zero
};

}  // namespace hadal
