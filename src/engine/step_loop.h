// The engine thread: drain, schedule, execute, update, emit. The front page of the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "cache/kv_cache_manager.h"
#include "engine/inbox.h"
#include "engine/metrics.h"
#include "engine/output_processor.h"
#include "runner/model_runner.h"
#include "sched/scheduler.h"

namespace hadal {

// Microseconds of a clock that never goes back. Tests bring their own.
using ClockUs = std::function<int64_t()>;
int64_t SteadyClockUs();

class StepLoop {
 public:
  // `runner` and `metrics` must outlive the loop.
  StepLoop(const SchedulerLimits& limits, const CacheGeometry& geometry, ModelRunner* runner,
           Metrics* metrics, ClockUs clock);
  // Stops the thread; sequences that have not ended are cancelled.
  ~StepLoop();

  // Any thread.
  Inbox* inbox() { return &inbox_; }

  // Runs steps on a thread of its own until the loop is destroyed.
  void Start();

  // One step, on the calling thread: for tests that have not called Start(). False when there was
  // nothing to do.
  bool Step();

 private:
  void TakeIn();
  void Run();
  void Record(int64_t started_us, int64_t executed_us, int64_t returned_us);

  ModelRunner* const runner_;
  Metrics* const metrics_;
  const ClockUs clock_;
  Inbox inbox_;
  KvCacheManager cache_;
  Scheduler scheduler_;
  OutputProcessor output_;
  StepResult result_;                    // of the last step; its memory is reused
  std::vector<Submission> submissions_;  // being taken in
  std::vector<SequenceId> cancelled_;
  std::thread thread_;
};

}  // namespace hadal
