// What an engine did since it was opened. Written by the engine thread and by those that submit,
// read by any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "batch/speculation.h"
#include "engine/histogram.h"
#include "runner/model_runner.h"

namespace hadal {

inline double Seconds(int64_t us) { return static_cast<double>(us) * 1e-6; }

struct MetricsSnapshot {
  int64_t num_submitted = 0;                                                // sequences
  int64_t num_stopped = 0, num_cut = 0, num_failed = 0, num_cancelled = 0;  // how they ended
  int64_t num_expired = 0;  // of num_failed: their deadline passed
  int64_t num_refused = 0;  // sequences for which there was no room in the queue
  int64_t num_submitted_prompt_tokens = 0;
  int64_t num_prompt_tokens = 0, num_cached_tokens = 0, num_generated_tokens = 0;  // of the ended
  int64_t num_accepted_drafts = 0, num_rejected_drafts = 0;
  // Drafts that were verified and those that were accepted, by their position in a run.
  std::array<int64_t, kMostDrafts> num_drafts_at{}, num_accepted_at{};
  int64_t num_verified_runs = 0;  // sequences' steps that could have had drafts
  int64_t num_run_tokens = 0;     // tokens that these gave
  int64_t drafting_us = 0;        // of execute_us: making drafts
  int64_t num_steps = 0, num_preemptions = 0, num_saves = 0;
  int64_t num_computed_tokens = 0;  // new rows of the cache, drafts included
  // Time of steps by part. `move_us`: rows that leave the cache or come back.
  int64_t schedule_us = 0, move_us = 0, execute_us = 0, emit_us = 0;
  int64_t step_us = 0;  // all parts
  // What steps had to read from memory, and what this machine can read in a second (0: unknown).
  int64_t weight_bytes_read = 0, cache_bytes_read = 0;
  double read_limit_bytes_per_s = 0;
  std::vector<LayerImbalance> expert_imbalance;  // of layers with experts
  int num_running = 0, num_waiting = 0;
  int num_cache_blocks = 0, num_free_cache_blocks = 0;
  // Prefixes on disk; all 0 without a folder for them.
  int64_t num_disk_hit_tokens = 0, disk_bytes = 0, num_disk_writes = 0, num_disk_faults = 0;

  SecondsHistogram time_to_first_token{kSecondsBounds};
  SecondsHistogram inter_token{kSecondsBounds};  // between two deliveries of one sequence
  SecondsHistogram end_to_end{kSecondsBounds};   // of those that were not cancelled
  SecondsHistogram queue_time{kSecondsBounds};   // until the first step
  SecondsHistogram step_time{kSecondsBounds};
  TokensHistogram prompt_tokens{kTokensBounds}, output_tokens{kTokensBounds};
  TokensHistogram step_tokens{kTokensBounds};

  int64_t num_ended() const { return num_stopped + num_cut + num_failed + num_cancelled; }
  int64_t num_pending() const { return num_submitted - num_ended(); }
};

class Metrics {
 public:
  MetricsSnapshot Snapshot() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }

  // Changes several values at once: change(MetricsSnapshot*). Returns what `change` returns.
  template <class Change>
  auto Update(Change change) {
    const std::lock_guard lock(mutex_);
    return change(&values_);
  }

 private:
  mutable std::mutex mutex_;
  MetricsSnapshot values_;
};

}  // namespace hadal
