// Fixed workers that run one loop at a time. The calling thread is worker 0.
// Which worker runs which index is free, so what a body computes for an index must not depend on
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace hadal {

class ThreadPool {
 public:
  // REQUIRES: num_threads >= 1. Starts num_threads - 1 workers; they spin, then yield, then sleep.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls body(index, worker) once for every index in [0, count), 0 <= worker < num_threads(), and
  // returns when all are done. Indices are handed out in order to whoever is free, some at a time
  // and the last ones singly, so make each worth some microseconds. One caller at a time; no
  // nesting; allocates nothing.
  template <class Body>
  void ParallelFor(int count, const Body& body) {
    Run(
        count,
        [](const void* context, int index, int worker) {
          (*static_cast<const Body*>(context))(index, worker);
        },
        &body);
  }

  // The same, but an index is passed over once the watched flag is set: what the bodies were to
  // write is then unfinished, and the caller has to throw it away.
  template <class Body>
  void ParallelForUntilStopped(int count, const Body& body) {
    ParallelFor(count, [this, &body](int index, int worker) {
      if (stop_ == nullptr || !stop_->load(std::memory_order_relaxed)) body(index, worker);
    });
  }
  // Null: nothing is watched. Not during a loop.
  void WatchStop(const std::atomic<bool>* stop) { stop_ = stop; }

 private:
  using Call = void (*)(const void* context, int index, int worker);
  void Run(int count, Call call, const void* context);

  struct State;
  std::unique_ptr<State> state_;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace hadal
