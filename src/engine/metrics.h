// Counters of an engine since it was opened. Written by the engine thread, read by any.
#pragma once

#include <cstdint>
#include <mutex>

#include "sched/request.h"

namespace hadal {

struct MetricsSnapshot {
  int64_t num_submitted = 0;                                                // sequences
  int64_t num_stopped = 0, num_cut = 0, num_failed = 0, num_cancelled = 0;  // how they ended
  int64_t num_prompt_tokens = 0, num_cached_tokens = 0, num_generated_tokens = 0;
  int64_t num_accepted_drafts = 0, num_rejected_drafts = 0;
  int64_t num_steps = 0, num_preemptions = 0;
  int64_t execute_us = 0;  // spent in the runner
  int64_t step_us = 0;     // spent in steps, the runner included
  int num_running = 0, num_waiting = 0;
};

class Metrics {
 public:
  MetricsSnapshot Snapshot() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }

  // Changes several values at once: change(MetricsSnapshot*).
  template <class Change>
  void Update(Change change) {
    const std::lock_guard lock(mutex_);
    change(&values_);
  }

 private:
  mutable std::mutex mutex_;
  MetricsSnapshot values_;
};

}  // namespace hadal
