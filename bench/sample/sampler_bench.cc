// Time to draw one token of DeepSeek-V3's vocabulary. The logits are normal numbers with a spread
// of 3 and a few high ones, as those of a trained model roughly are.
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "sample/sampler.h"

namespace hadal {
namespace {

constexpr int kVocabSize = 129280;

std::vector<float> ModelLikeLogits() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocabSize);
  for (float& logit : logits) logit = normal(random);
  for (int i = 0; i < 50; ++i) logits[static_cast<size_t>(i) * 2000 + 7] += 12;
  return logits;
}

void Draw(benchmark::State& state, SamplingParams params) {
  std::vector<float> logits = ModelLikeLogits();
  Sampler sampler(kVocabSize);
  std::vector<TokenLogprob> top_logprobs;
  int position = 0;
  for (auto _ : state) {
    top_logprobs.clear();
    SampledToken token;
    const bool is_finite = sampler.Sample(
        {.logits = logits, .params = &params, .position = ++position}, &token, &top_logprobs);
    benchmark::DoNotOptimize(is_finite);
    benchmark::DoNotOptimize(token);
  }
}

SamplingParams Greedy(int num_logprobs) {
  SamplingParams params;
  params.num_logprobs = num_logprobs;
  return params;
}

SamplingParams Filtered(float temperature, int top_k, float top_p, float min_p) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  return params;
}

BENCHMARK_CAPTURE(Draw, greedy, Greedy(-1));
BENCHMARK_CAPTURE(Draw, greedy_with_20_logprobs, Greedy(20));
BENCHMARK_CAPTURE(Draw, temperature, Filtered(1.0f, 0, 1.0f, 0.0f));
BENCHMARK_CAPTURE(Draw, temperature_top_p, Filtered(0.6f, 0, 0.95f, 0.0f));
BENCHMARK_CAPTURE(Draw, temperature_top_k, Filtered(1.0f, 40, 1.0f, 0.0f));
BENCHMARK_CAPTURE(Draw, temperature_min_p, Filtered(1.0f, 0, 1.0f, 0.05f));

}  // namespace
}  // namespace hadal
