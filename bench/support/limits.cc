#include "bench/support/limits.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>

#include "sys/read_probe.h"

namespace hadal::bench {
namespace {

// The shortest time of a call of body(), in seconds per thread.
template <class Body>
double BestTime(int calls, const ThreadPool& pool, const Body& body) {
  double best = 1e9;
  for (int call = 0; call < calls; ++call) {
    const double start = ThreadSeconds(pool);
    body();
    best = std::min(best, (ThreadSeconds(pool) - start) / pool.num_threads());
  }
  return best;
}

}  // namespace

ThreadPool& Pool(int num_threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  std::unique_ptr<ThreadPool>& pool = pools[num_threads];
  if (pool == nullptr) pool = std::make_unique<ThreadPool>(num_threads);
  return *pool;
}

double ThreadSeconds(const ThreadPool& pool) {
  timespec time = {};
  clock_gettime(pool.num_threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  const double seconds =
      static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  return seconds * pool.num_threads();
}

Limits MeasureLimits(const KernelTable& kernels, ThreadPool* pool) {
  constexpr int64_t kReadBytes = int64_t{256} << 20;
  constexpr int64_t kRounds = 500'000;
  static ReadProbe probe(kReadBytes, pool);
  const double read = BestTime(5, *pool, [&] { probe.Pass(pool); });
  const double operate = BestTime(10, *pool, [&] {
    pool->ParallelFor(pool->num_threads(), [&](int, int) {
      benchmark::DoNotOptimize(kernels.multiply_add_probe(kRounds));
    });
  });
  const double integer = BestTime(10, *pool, [&] {
    pool->ParallelFor(pool->num_threads(),
                      [&](int, int) { benchmark::DoNotOptimize(kernels.integer_probe(kRounds)); });
  });
  const double rounds = static_cast<double>(kRounds) * pool->num_threads();
  return {static_cast<double>(probe.bytes()) / read, rounds * kProbeOps / operate,
          rounds * kernels.integer_probe_ops / integer};
}

void Report(benchmark::State& state, const Work& work, const Limits& before, const Limits& after,
            const ThreadPool& pool, std::vector<double>* seconds) {
  const auto middle = seconds->begin() + static_cast<std::ptrdiff_t>(seconds->size() / 2);
  std::nth_element(seconds->begin(), middle, seconds->end());
  const double median = *middle / pool.num_threads();
  const double read = std::max(before.read_bytes_per_s, after.read_bytes_per_s);
  const double operate = std::max(before.ops_per_s, after.ops_per_s);
  state.counters["GB/s"] = work.bytes / median / 1e9;
  state.counters["Gop/s"] = work.ops / median / 1e9;
  state.counters["read%"] = 100 * work.bytes / median / read;
  const double integer = std::max(before.integer_ops_per_s, after.integer_ops_per_s);
  state.counters["ops%"] = 100 * work.ops / median / operate;
  state.counters["integer%"] = 100 * work.ops / median / integer;
}

}  // namespace hadal::bench
