#include "sample/logit_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace hadal {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Four numbers in a register of any processor.
using Floats [[gnu::vector_size(16)]] = float;
using Ints [[gnu::vector_size(16)]] = int32_t;
constexpr size_t kLanes = 4;

Floats Load(const float* from) {
  Floats values;
  std::memcpy(&values, from, sizeof(values));
  return values;
}

struct BlockSummary {
  float max = -kInfinity;
  bool has_nan = false;
};

// The rows of a head may end within a block, so a block's end is taken lane by lane.
BlockSummary Summarize(std::span<const float> logits) {
  constexpr size_t kChains = 4;  // several maxima at once: each waits for the one before
  std::array<Floats, kChains> max;
  Ints nan{};
  max.fill(Floats{} - kInfinity);
  size_t i = 0;
  for (; i + kChains * kLanes <= logits.size(); i += kChains * kLanes) {
    for (size_t chain = 0; chain < kChains; ++chain) {
      const Floats values = Load(&logits[i + chain * kLanes]);
      max[chain] = values > max[chain] ? values : max[chain];
      nan |= values != values;
    }
  }
  BlockSummary summary;
  for (; i < logits.size(); ++i) {
    summary.max = std::max(summary.max, logits[i]);
    summary.has_nan |= logits[i] != logits[i];
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    for (const Floats& chain : max) summary.max = std::max(summary.max, chain[lane]);
    summary.has_nan |= nan[lane] != 0;
  }
  return summary;
}

// exp(x) for x in [-kNegligible, 0], exactly 1 at 0: 2^n * exp(r) with |r| <= ln(2) / 2 and seven
// terms of the series. Below, 0.
Floats Weights(Floats x) {
  constexpr float kLog2E = 1.44269504f, kRounding = 12582912.0f;  // 1.5 * 2^23
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const Floats lowest = Floats{} - static_cast<float>(LogitBlocks::kNegligible);
  const Ints has_weight = x >= lowest;
  x = has_weight ? x : lowest;
  const Floats shifted = x * kLog2E + kRounding;
  const Floats n = shifted - kRounding;
  const Floats r = (x - n * kLn2High) - n * kLn2Low;
  Floats series = r * (1.0f / 5040) + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 1.0f / 2;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  // 2^n: n stands in the low bits of `shifted` and belongs into the exponent.
  const Ints exponent = std::bit_cast<Ints>(shifted) << 23;
  return std::bit_cast<Floats>((std::bit_cast<Ints>(series) + exponent) & has_weight);
}

float Weight(float x) { return Weights(Floats{x})[0]; }

float InverseOf(double temperature) { return static_cast<float>(std::min(1 / temperature, 1e30)); }

}  // namespace

LogitBlocks::LogitBlocks(int max_size) {
  HADAL_CHECK(max_size > 0);
  const size_t num_blocks = (static_cast<size_t>(max_size) + kBlockLogits - 1) / kBlockLogits;
  block_max_.reserve(num_blocks);
  block_sum_.reserve(num_blocks);
}

bool LogitBlocks::Read(std::span<const float> logits) {
  logits_ = logits;
  const size_t num_blocks = (logits.size() + kBlockLogits - 1) / kBlockLogits;
  HADAL_DCHECK(num_blocks <= block_max_.capacity());
  block_max_.resize(num_blocks);
  block_sum_.resize(num_blocks);
  max_ = -kInfinity;
  bool has_nan = false;
  for (size_t block = 0; block < num_blocks; ++block) {
    const BlockSummary summary = Summarize(BlockAt(block));
    block_max_[block] = summary.max;
    max_ = std::max(max_, summary.max);
    has_nan |= summary.has_nan;
  }
  return !has_nan && std::isfinite(max_);
}

TokenId LogitBlocks::Best() const {
  const auto block = static_cast<size_t>(std::ranges::find(block_max_, max_) - block_max_.begin());
  const std::span<const float> logits = BlockAt(block);
  return {static_cast<int32_t>(block * kBlockLogits) +
          static_cast<int32_t>(std::ranges::find(logits, max_) - logits.begin())};
}

double LogitBlocks::SumWeights(double temperature, float below) {
  const float inverse = InverseOf(temperature);
  const double floor = max_ - kNegligible * temperature;
  double total = 0;
  for (size_t block = 0; block < block_max_.size(); ++block) {
    block_sum_[block] = 0;
    if (block_max_[block] < floor) continue;
    const std::span<const float> logits = BlockAt(block);
    Floats sums{};
    size_t i = 0;
    for (; i + kLanes <= logits.size(); i += kLanes) {
      const Floats values = Load(&logits[i]);
      const Floats weights = Weights((values - max_) * inverse);
      sums += values < below ? weights : Floats{};
    }
    double sum = 0;
    for (; i < logits.size(); ++i)
      if (logits[i] < below) sum += Weight((logits[i] - max_) * inverse);
    for (size_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
    block_sum_[block] = sum;
    total += sum;
  }
  return total;
}

TokenId LogitBlocks::AtWeight(double target, double temperature) const {
  size_t block = 0;          // the last one with a weight that begins before the target
  double mass = 0, sum = 0;  // before `block`, and with the blocks up to here
  for (size_t i = 0; i < block_sum_.size() && sum <= target; ++i) {
    if (block_sum_[i] == 0) continue;
    block = i;
    mass = sum;
    sum += block_sum_[i];
  }
  // Sums are rounded, also in another order than here: behind the last weight the last one is
  // meant.
  const float inverse = InverseOf(temperature);
  const std::span<const float> logits = BlockAt(block);
  size_t found = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float weight = Weight((logits[i] - max_) * inverse);
    if (weight == 0) continue;
    found = i;
    mass += weight;
    if (mass > target) break;
  }
  return {static_cast<int32_t>(block * kBlockLogits + found)};
}

}  // namespace hadal
