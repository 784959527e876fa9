// When to try again, and after how long.
#pragma once

#include <atomic>
#include <cstdint>

namespace hadal {

struct RetryPolicy {
  int max_failures = 6;        // in a row, without a byte won between them
  double first_wait_s = 1;     // doubled after each failure
  double longest_wait_s = 60;  // unless the hub asks for more
};

class Retry {
 public:
  // `seed` spreads the waits of those who failed together. `stop` may be null.
  Retry(const RetryPolicy& policy, uint64_t seed, const std::atomic<bool>* stop)
      : policy_(policy), seed_(seed), stop_(stop) {}

  // Something was won: the count of failures begins anew.
  void NoteProgress() { num_failures_ = 0; }

  // Waits before another attempt, at least `asked_s`. False when there is to be none.
  bool WaitForNext(double asked_s);

  int num_failures() const { return num_failures_; }

 private:
  RetryPolicy policy_;
  uint64_t seed_;
  const std::atomic<bool>* stop_;
  int num_failures_ = 0;
};

}  // namespace hadal
