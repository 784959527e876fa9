#include "hub/retry.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/random.h"

namespace hadal {
namespace {

constexpr std::chrono::milliseconds kNap{20};

}  // namespace

bool Retry::WaitForNext(double asked_s) {
  if (++num_failures_ >= policy_.max_failures) return false;
  const double doubled = policy_.first_wait_s * std::exp2(num_failures_ - 1);
  const uint64_t bits = RandomBits(seed_, static_cast<uint64_t>(num_failures_));
  const double spread = 0.75 + 0.5 * static_cast<double>(bits >> 11) * 0x1p-53;
  const double wait = std::max(std::min(doubled, policy_.longest_wait_s) * spread, asked_s);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait);
  while (std::chrono::steady_clock::now() < end) {
    if (stop_ != nullptr && *stop_) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

}  // namespace hadal
