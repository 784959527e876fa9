#include "engine/step_loop.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/log.h"

namespace hadal {

int64_t SteadyClockUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

StepLoop::StepLoop(const SchedulerLimits& limits, const CacheGeometry& geometry,
                   ModelRunner* runner, Metrics* metrics, ClockUs clock)
    : runner_(runner),
      metrics_(metrics),
      clock_(std::move(clock)),
      cache_(geometry),
      scheduler_(limits, &cache_),
      output_(metrics) {}

StepLoop::~StepLoop() {
  inbox_.Close();
  if (thread_.joinable()) thread_.join();
  TakeIn();
  output_.EndAll(FinishReason::kCancelled);
}

bool StepLoop::Step() {
  TakeIn();
  if (!scheduler_.has_work()) return false;
  const int64_t started_us = clock_();
  const BatchPlan& plan = scheduler_.Schedule();
  output_.NoteStarted(plan, started_us);
  output_.AddMasks(scheduler_.mutable_plan());
  const int64_t executed_us = clock_();
  const Status status = runner_->Execute(plan, &result_);
  const int64_t returned_us = clock_();
  if (!status.ok()) result_.Clear();
  const std::vector<SequenceId>& stopped = output_.Emit(
      status.ok() ? scheduler_.Update(plan, result_) : scheduler_.Abandon(plan, status), result_,
      returned_us);
  for (const SequenceId id : stopped) scheduler_.Finish(id);
  Record(started_us, executed_us, returned_us);
  return true;
}

void StepLoop::TakeIn() {
  inbox_.Drain(&submissions_, &cancelled_);
  for (Submission& submission : submissions_) {
    const SequenceId id = submission.request.id;
    output_.Add(std::move(submission.output));
    const Status status = scheduler_.Add(std::move(submission.request));
    if (!status.ok()) output_.End(id, FinishReason::kError, status.message());
  }
  for (const SequenceId id : cancelled_) {
    scheduler_.Finish(id);
    output_.End(id, FinishReason::kCancelled, "");
  }
  submissions_.clear();
  cancelled_.clear();
}

void StepLoop::Record(int64_t started_us, int64_t executed_us, int64_t returned_us) {
  const int64_t now_us = clock_();
  metrics_->Update([&](MetricsSnapshot* values) {
    ++values->num_steps;
    values->execute_us += returned_us - executed_us;
    values->step_us += now_us - started_us;
    values->num_preemptions = scheduler_.num_preemptions();
    values->num_running = scheduler_.num_running();
    values->num_waiting = scheduler_.num_waiting();
  });
}

void StepLoop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void StepLoop::Run() {
  try {
    while (!inbox_.is_closed())
      if (!Step()) inbox_.Wait();
  } catch (const std::exception& failure) {
    // What the standard library throws, out of memory above all: no state can be trusted any more.
    Log(LogLevel::kError, "engine thread: {}", failure.what());
    std::_Exit(1);
  }
}

}  // namespace hadal
