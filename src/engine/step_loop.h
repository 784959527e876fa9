// The engine thread: drain, schedule, execute, update, emit. The front page of the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cache/kv_cache_manager.h"
#include "engine/inbox.h"
#include "engine/metrics.h"
#include "engine/output_processor.h"
#include "engine/prefix_disk.h"
#include "engine/saved_rows.h"
#include "engine/trace_writer.h"
#include "runner/model_runner.h"
#include "sched/scheduler.h"

namespace hadal {

// Microseconds of a clock that never goes back. Tests bring their own.
using ClockUs = std::function<int64_t()>;
int64_t SteadyClockUs();

class StepLoop {
 public:
  // All that is pointed at must outlive the loop. `store` and `trace` may be null: no prefixes on
  // disk, no spans.
  StepLoop(const SchedulerLimits& limits, const CacheGeometry& geometry, ModelRunner* runner,
           Metrics* metrics, ClockUs clock, PrefixStore* store = nullptr,
           TraceWriter* trace = nullptr);
  // Stops the thread; sequences that have not ended are cancelled.
  ~StepLoop();

  // Any thread.
  Inbox* inbox() { return &inbox_; }

  // Any thread. Ends sequences at the next step. A running step that works mostly for them is
  // broken off; but of those in which others take part never two in a row, so that clients that
  // come and go cannot keep the others from moving on.
  void Cancel(const std::vector<SequenceId>& ids);

  // Runs steps on a thread of its own until the loop is destroyed.
  void Start();

  // One step, on the calling thread: for tests that have not called Start(). False when there was
  // nothing to do.
  bool Step();

 private:
  // When the parts of a step began, and when the last one ended.
  struct StepTimes {
    int64_t schedule_us = 0, move_us = 0, execute_us = 0, emit_us = 0, end_us = 0;
  };

  void TakeIn();
  void TakeIn(Submission* submission);
  void Drop(SequenceId id);
  void Expire();
  Status MoveRows(const BatchPlan& plan);
  void Announce(const BatchPlan& plan);
  void EndAnnounced(bool is_broken_off);
  void BreakOffIfFor(const std::vector<SequenceId>& ids);
  void Record(const BatchPlan& plan, const StepTimes& times);
  void RecordState();
  void Trace(const BatchPlan& plan, const StepTimes& times);
  void Run();

  ModelRunner* const runner_;
  Metrics* const metrics_;
  TraceWriter* const trace_;
  const ClockUs clock_;
  Inbox inbox_;
  KvCacheManager cache_;
  Scheduler scheduler_;
  OutputProcessor output_;
  SavedRows saved_;
  std::optional<PrefixDisk> disk_;
  StepResult result_;                    // of the last step; its memory is reused
  std::vector<Submission> submissions_;  // being taken in
  std::vector<SequenceId> cancelled_;
  std::thread thread_;

  std::mutex step_mutex_;
  std::vector<std::pair<SequenceId, int>> step_tokens_;  // of the running step; by step_mutex_
  bool was_broken_off_ = false;                          // the step before; by step_mutex_
};

}  // namespace hadal
