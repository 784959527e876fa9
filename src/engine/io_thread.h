// A thread that does one job after the other: file work that the engine thread must not wait for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace hadal {

class IoThread {
 public:
  IoThread() : thread_([this] { Run(); }) {}
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;
  // Does the job that has begun to its end; the rest is dropped, unless Finish() was called.
  ~IoThread() { Stop(/*does_rest=*/false); }

  // Any thread. Behind Finish() jobs are dropped.
  void Add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    jobs_.push_back(std::move(job));
    changed_.notify_one();
  }

  // Does all jobs that were added, then ends.
  void Finish() { Stop(/*does_rest=*/true); }

 private:
  void Stop(bool does_rest) {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
      if (!does_rest) jobs_.clear();
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // by mutex_, as is is_stopping_
  bool is_stopping_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace hadal
