#include "sched/step_pacer.h"

#include <algorithm>
#include <cmath>

namespace hadal {
namespace {

constexpr double kEvenDepth = 4096;  // see PromptWork

// New measurements against old ones. One that is far off counts as at most this much off: a
// machine that was busy elsewhere for a moment should not close the door for long.
constexpr double kWeight = 0.4;
constexpr double kMaxJump = 3;

// A step whose size was never seen may be this much larger than the largest that was.
constexpr double kMaxGrowth = 2;
constexpr double kFirstWork = 32;

double BlendStepTime(double old, double measured) {
  return old + kWeight * (std::clamp(measured, old / kMaxJump, old * kMaxJump) - old);
}

}  // namespace

double PromptWork(int position, int num_tokens) {
  const double mean_depth = position + 0.5 * num_tokens;
  return num_tokens * (1 + mean_depth / kEvenDepth);
}

// The positive root of n * (1 + (position + n / 2) / kEvenDepth) = work.
int PromptTokens(int position, double work) {
  if (work >= 1e9) return 1 << 30;
  const double linear = 1 + position / kEvenDepth;
  const double root = std::sqrt(linear * linear + 2 * work / kEvenDepth);
  return static_cast<int>((root - linear) * kEvenDepth + 1e-6);
}

double StepPacer::MaxPromptWork(int num_decoding) const {
  const int64_t target_us = num_decoding > 0 ? options_.max_step_us : options_.max_prompt_step_us;
  if (target_us <= 0) return kNoLimit;
  if (!has_costs_) return kFirstWork;
  const double room_us = static_cast<double>(target_us) - BaseUs(num_decoding);
  double work = 0;
  if (CostUs(0) < room_us) {
    int i = 0;
    while (i + 1 < kNumCosts && CostUs(i + 1) <= room_us) ++i;
    const double units = std::exp2(i);
    const double slope =
        i + 1 < kNumCosts ? (CostUs(i + 1) - CostUs(i)) / units : CostUs(i) / units;
    work = units + (slope > 0 ? std::min(units, (room_us - CostUs(i)) / slope) : 0);
  }
  return std::max(kMinWork, std::min(work, kMaxGrowth * largest_seen_));
}

void StepPacer::Note(const StepLoad& load, int64_t elapsed_us) {
  const double us = std::max<double>(1, static_cast<double>(elapsed_us));
  if (load.prompt_work > 0) {
    // At least a tenth of the step is the prompt's: the base may be of a time when more decoded.
    NoteCost(load.prompt_work, std::max(us - BaseUs(load.num_decoding), us / 10));
  } else if (load.num_decoding > 0) {
    base_us_ = has_base_ ? BlendStepTime(base_us_, us) : us;
    has_base_ = true;
  }
}

void StepPacer::NoteCost(double work, double us) {
  largest_seen_ = std::max(largest_seen_, work);
  const int nearest = std::clamp(static_cast<int>(std::lround(std::log2(work))), 0, kNumCosts - 1);
  const double scaled = us * std::exp2(nearest) / work;
  if (!has_costs_) {
    // Nothing is known: in proportion above, the same below.
    for (int i = 0; i < kNumCosts; ++i)
      costs_us_[static_cast<size_t>(i)] = scaled * std::max(1.0, std::exp2(i - nearest));
    has_costs_ = true;
    return;
  }
  const double cost = BlendStepTime(CostUs(nearest), scaled);
  for (int i = 0; i < kNumCosts; ++i) {
    double& other = costs_us_[static_cast<size_t>(i)];
    const double in_proportion = cost * std::exp2(i - nearest);
    other = std::clamp(other, std::min(cost, in_proportion), std::max(cost, in_proportion));
  }
}

}  // namespace hadal
