#include "sys/thread_pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"

namespace hadal {
namespace {

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Some tens of microseconds of spinning and about as many of yielding cover the gaps inside a step;
// sleeping covers idle time.
constexpr int kSpins = 2000;
constexpr int kYields = 200;

// Number of the loop in the upper half, indices not yet handed out in the lower.
uint64_t Ticket(uint32_t loop, uint32_t remaining) {
  return (static_cast<uint64_t>(loop) << 32) | remaining;
}
uint32_t RemainingOf(uint64_t ticket) { return static_cast<uint32_t>(ticket); }

// How many indices a worker takes at once: neighbours lie next to each other in memory, which is
// read ahead; towards the end one by one, so that all end together.
uint32_t RunOf(uint32_t remaining, int num_threads) {
  return std::max<uint32_t>(1, remaining / (4 * static_cast<uint32_t>(num_threads)));
}

}  // namespace

// A loop is published by storing a new ticket. Whoever takes indices does so by lowering the
// ticket, which fails if the loop has changed meanwhile; only then does it look at the fields of
// the loop. The caller waits until all indices are done, not until all workers have come by: on a
// machine whose cores are shared a worker may sleep through a whole loop, and nobody waits for it.
struct ThreadPool::State {
  int num_threads = 1;
  // Of the current loop. Written by the caller while no index is out.
  Call call = nullptr;
  const void* context = nullptr;
  uint32_t count = 0;
  uint32_t loop = 0;
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<uint32_t> num_done{0};
  alignas(64) std::atomic<int> num_asleep{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;

  bool HasWork() const {
    return RemainingOf(ticket.load()) != 0 || stop.load(std::memory_order_relaxed);
  }

  void Drain(int worker) {
    uint64_t seen = ticket.load(std::memory_order_acquire);
    while (RemainingOf(seen) != 0) {
      const uint32_t remaining = RemainingOf(seen);
      const uint32_t run = RunOf(remaining, num_threads);
      if (!ticket.compare_exchange_weak(seen, seen - run, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        continue;
      }
      const uint32_t first = count - remaining;
      for (uint32_t index = first; index < first + run; ++index) {
        call(context, static_cast<int>(index), worker);
      }
      num_done.fetch_add(run, std::memory_order_release);
      seen = ticket.load(std::memory_order_acquire);
    }
  }

  void AwaitWork() {
    for (int i = 0; i < kSpins; ++i) {
      if (HasWork()) return;
      Pause();
    }
    for (int i = 0; i < kYields; ++i) {
      if (HasWork()) return;
      std::this_thread::yield();
    }
    std::unique_lock lock(mutex);
    num_asleep.fetch_add(1);
    wake.wait(lock, [this] { return HasWork(); });
    num_asleep.fetch_sub(1);
  }

  void Work(int worker) {
    for (;;) {
      AwaitWork();
      if (stop.load(std::memory_order_relaxed)) return;
      Drain(worker);
    }
  }

  // After a change that HasWork() sees.
  void WakeSleepers() {
    // A sleeper counts itself before it looks for work, and we publish work before we look at the
    // count (all sequentially consistent), so one of the two sees the other.
    if (num_asleep.load() == 0) return;
    const std::lock_guard lock(mutex);
    wake.notify_all();
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  HADAL_CHECK(num_threads >= 1);
  state_->num_threads = num_threads;
  for (int worker = 1; worker < num_threads; ++worker) {
    state_->threads.emplace_back([state = state_.get(), worker] { state->Work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true);
  {
    const std::lock_guard lock(state_->mutex);
    state_->wake.notify_all();
  }
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::num_threads() const { return state_->num_threads; }

void ThreadPool::Run(int count, Call call, const void* context) {
  if (count <= 0) return;
  if (state_->num_threads == 1 || count == 1) {
    for (int index = 0; index < count; ++index) call(context, index, 0);
    return;
  }
  State& state = *state_;
  state.call = call;
  state.context = context;
  state.count = static_cast<uint32_t>(count);
  state.num_done.store(0, std::memory_order_relaxed);
  state.ticket.store(Ticket(++state.loop, state.count));
  state.WakeSleepers();
  state.Drain(0);
  for (int spins = 0; state.num_done.load(std::memory_order_acquire) != state.count; ++spins) {
    if (spins < kSpins) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace hadal
