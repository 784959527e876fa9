#include "sys/thread_pool.h"

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

// Some microseconds of spinning and about as many yields cover the gaps inside a step; sleeping
// covers idle time.
constexpr int kSpins = 2000;
constexpr int kYields = 200;

}  // namespace

// A loop is published by raising `generation`. `pending` counts the workers that have not finished
// with it, so the fields of a loop are never written while a worker may read them.
struct ThreadPool::State {
  int num_threads = 1;
  Call call = nullptr;
  const void* context = nullptr;
  int count = 0;
  alignas(64) std::atomic<int> next{0};
  alignas(64) std::atomic<int> pending{0};
  alignas(64) std::atomic<uint32_t> generation{0};
  std::atomic<int> num_asleep{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;

  void Drain(int worker) {
    for (int index = next.fetch_add(1, std::memory_order_relaxed); index < count;
         index = next.fetch_add(1, std::memory_order_relaxed)) {
      call(context, index, worker);
    }
  }

  // Waits until generation differs from `seen`.
  void Await(uint32_t seen) {
    for (int i = 0; i < kSpins; ++i) {
      if (generation.load(std::memory_order_acquire) != seen) return;
      Pause();
    }
    for (int i = 0; i < kYields; ++i) {
      if (generation.load(std::memory_order_acquire) != seen) return;
      std::this_thread::yield();
    }
    std::unique_lock lock(mutex);
    num_asleep.fetch_add(1);
    wake.wait(lock, [&] { return generation.load() != seen; });
    num_asleep.fetch_sub(1);
  }

  void Work(int worker) {
    for (uint32_t seen = 0;;) {
      Await(seen);
      seen = generation.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_relaxed)) return;
      Drain(worker);
      pending.fetch_sub(1, std::memory_order_release);
    }
  }

  void Publish() {
    generation.fetch_add(1);
    // A sleeper counts itself before it looks at generation, and we raise generation before we look
    // at the count (both sequentially consistent), so one of the two sees the other.
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
  state_->Publish();
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
  state.count = count;
  state.next.store(0, std::memory_order_relaxed);
  state.pending.store(state.num_threads - 1, std::memory_order_relaxed);
  state.Publish();
  state.Drain(0);
  for (int spins = 0; state.pending.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace hadal
