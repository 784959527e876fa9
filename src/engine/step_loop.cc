#include "engine/step_loop.h"

#include <algorithm>
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
                   ModelRunner* runner, Metrics* metrics, ClockUs clock, PrefixStore* store,
                   TraceWriter* trace)
    : runner_(runner),
      metrics_(metrics),
      trace_(trace),
      clock_(std::move(clock)),
      cache_(geometry),
      scheduler_(limits, &cache_),
      output_(metrics, trace),
      saved_(runner) {
  if (store != nullptr) disk_.emplace(PrefixDiskLimits{}, store, runner, &inbox_, metrics);
  step_tokens_.reserve(static_cast<size_t>(limits.max_sequences));
  RecordState();
}

StepLoop::~StepLoop() {
  inbox_.Close();
  runner_->Interrupt();
  if (thread_.joinable()) thread_.join();
  disk_.reset();  // writes what it was given
  TakeIn();
  output_.EndAll(FinishReason::kCancelled, clock_());
}

bool StepLoop::Step() {
  TakeIn();
  Expire();
  if (!scheduler_.has_work()) return false;
  StepTimes times;
  times.schedule_us = clock_();
  const BatchPlan& plan = scheduler_.Schedule();
  output_.NoteStarted(plan, times.schedule_us);
  output_.AddMasks(scheduler_.mutable_plan());
  Announce(plan);
  times.move_us = clock_();
  Status status = MoveRows(plan);
  times.execute_us = clock_();
  if (status.ok()) status = runner_->Execute(plan, &result_);
  times.emit_us = clock_();
  const bool is_broken_off = status.code() == StatusCode::kCancelled;
  EndAnnounced(is_broken_off);
  if (is_broken_off) {
    scheduler_.Retry(plan);
    return true;
  }
  scheduler_.NoteStepTime(times.emit_us - times.execute_us, result_.drafting_us);
  if (status.ok()) {
    if (disk_) disk_->KeepNewBlocks(plan);
  } else {
    result_.Clear();
    for (const SequenceSlice& slice : plan.slices) Drop(slice.id);
  }
  const std::vector<SequenceUpdate>& updates =
      status.ok() ? scheduler_.Update(plan, result_) : scheduler_.Abandon(plan, status);
  RecordState();  // before anyone hears of an end
  const std::vector<SequenceId>& stopped = output_.Emit(updates, result_, times.emit_us);
  for (const SequenceId id : stopped) scheduler_.Finish(id);
  times.end_us = clock_();
  Record(plan, times);
  return true;
}

void StepLoop::TakeIn() {
  inbox_.Drain(&submissions_, &cancelled_);
  for (Submission& submission : submissions_) TakeIn(&submission);
  for (const SequenceId id : cancelled_) {
    scheduler_.Finish(id);
    Drop(id);
    RecordState();
    output_.End(id, FinishReason::kCancelled, Status::Ok(), clock_());
  }
  if (!submissions_.empty()) RecordState();
  submissions_.clear();
  cancelled_.clear();
}

void StepLoop::TakeIn(Submission* submission) {
  const Request& request = submission->request;
  const SequenceId id = request.id;
  if (submission->is_back) {
    if (disk_) disk_->NoteReturned(id);
    if (!output_.Has(id)) return;  // cancelled meanwhile
  } else {
    output_.Add(std::move(submission->output));
    const int num_shared = disk_ ? cache_.CountShared(request.prompt, request.cache_salt) : 0;
    if (disk_ && disk_->Take(num_shared, submission)) return;
  }
  const Status status = scheduler_.Add(std::move(submission->request));
  if (!status.ok()) {
    Drop(id);
    return output_.End(id, FinishReason::kError, status, clock_());
  }
  if (submission->rows.num_blocks > 0) saved_.Add(id, std::move(submission->rows));
}

// What is kept of a sequence outside the scheduler.
void StepLoop::Drop(SequenceId id) {
  saved_.Erase(id);
  if (disk_) disk_->Forget(id);
}

void StepLoop::Expire() {
  const int64_t now_us = clock_();
  for (const SequenceUpdate& update : scheduler_.Expire(now_us)) {
    Drop(update.id);
    output_.End(update.id, update.finish, update.error, now_us);
  }
}

// A save that fails costs time only: the rows are computed again.
Status StepLoop::MoveRows(const BatchPlan& plan) {
  for (const BlockMove& move : plan.saves) {
    const Status status = saved_.Save(plan, move);
    if (status.ok()) continue;
    Log(LogLevel::kWarning, "{}", status.message());
    scheduler_.LoseSaved(move.id);
  }
  for (const BlockMove& move : plan.restores) RETURN_IF_ERROR(saved_.Restore(plan, move));
  return Status::Ok();
}

// Says who is in the step, for Cancel(). Who was cancelled while it was planned is in the inbox.
void StepLoop::Announce(const BatchPlan& plan) {
  const std::lock_guard lock(step_mutex_);
  step_tokens_.clear();
  for (const SequenceSlice& slice : plan.slices)
    step_tokens_.emplace_back(slice.id, slice.num_tokens);
  inbox_.VisitCancelled([this](const std::vector<SequenceId>& ids) { BreakOffIfFor(ids); });
}

void StepLoop::EndAnnounced(bool is_broken_off) {
  const std::lock_guard lock(step_mutex_);
  step_tokens_.clear();
  was_broken_off_ = is_broken_off;
}

void StepLoop::Cancel(const std::vector<SequenceId>& ids) {
  inbox_.Cancel(ids);
  const std::lock_guard lock(step_mutex_);
  BreakOffIfFor(ids);
}

// Breaks the announced step off if most of it is for `ids`. REQUIRES: step_mutex_ is held.
void StepLoop::BreakOffIfFor(const std::vector<SequenceId>& ids) {
  int num_tokens = 0, num_for_nothing = 0;
  for (const auto& [id, tokens] : step_tokens_) {
    num_tokens += tokens;
    if (std::ranges::find(ids, id) != ids.end()) num_for_nothing += tokens;
  }
  const bool is_all = num_for_nothing == num_tokens;
  if (num_for_nothing > 0 && (is_all || (2 * num_for_nothing > num_tokens && !was_broken_off_)))
    runner_->Interrupt();
}

void StepLoop::Record(const BatchPlan& plan, const StepTimes& times) {
  int num_runs = 0, num_run_tokens = 0;
  for (size_t i = 0; i < result_.slices.size(); ++i) {
    if (!plan.slices[i].speculation.is_on() || !plan.slices[i].wants_tokens) continue;
    ++num_runs;
    num_run_tokens += result_.slices[i].num_tokens;
  }
  metrics_->Update([&](MetricsSnapshot* values) {
    ++values->num_steps;
    values->num_computed_tokens += static_cast<int64_t>(plan.tokens.size());
    values->num_verified_runs += num_runs;
    values->num_run_tokens += num_run_tokens;
    values->drafting_us += result_.drafting_us;
    values->weight_bytes_read += result_.traffic.weight_bytes;
    values->cache_bytes_read += result_.traffic.cache_bytes;
    values->schedule_us += times.move_us - times.schedule_us;
    values->move_us += times.execute_us - times.move_us;
    values->execute_us += times.emit_us - times.execute_us;
    values->emit_us += times.end_us - times.emit_us;
    values->step_us += times.end_us - times.schedule_us;
    values->step_time.Add(static_cast<double>(times.end_us - times.schedule_us) * 1e-6);
    values->step_tokens.Add(static_cast<double>(plan.tokens.size()));
  });
  RecordState();
  if (trace_ != nullptr) Trace(plan, times);
}

void StepLoop::Trace(const BatchPlan& plan, const StepTimes& times) {
  int num_reading = 0;
  for (const SequenceSlice& slice : plan.slices)
    num_reading += slice.num_cached < slice.num_prompt_tokens ? 1 : 0;
  const auto count = [](size_t number) { return static_cast<int64_t>(number); };
  trace_->Span("step", times.schedule_us, times.end_us,
               {{"tokens", count(plan.tokens.size())},
                {"sequences", count(plan.slices.size())},
                {"reading", num_reading},
                {"saved", count(plan.saves.size())},
                {"restored", count(plan.restores.size())}});
  trace_->Span("schedule", times.schedule_us, times.move_us);
  if (!plan.moved_blocks.empty()) trace_->Span("move rows", times.move_us, times.execute_us);
  trace_->Span("execute", times.execute_us, times.emit_us);
  trace_->Span("emit", times.emit_us, times.end_us);
  trace_->Counter("running", times.end_us, scheduler_.num_running());
  trace_->Counter("waiting", times.end_us, scheduler_.num_waiting());
  trace_->Counter("free cache blocks", times.end_us, cache_.num_free_blocks());
}

void StepLoop::RecordState() {
  metrics_->Update([&](MetricsSnapshot* values) {
    values->num_preemptions = scheduler_.num_preemptions();
    values->num_saves = scheduler_.num_saves();
    values->num_running = scheduler_.num_running();
    values->num_waiting = scheduler_.num_waiting();
    values->num_cache_blocks = cache_.geometry().num_blocks;
    values->num_free_cache_blocks = cache_.num_free_blocks();
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
