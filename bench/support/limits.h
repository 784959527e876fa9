// What the machine can do at this moment: benchmarks measure it right beside their own time,
// because other programs share the machine and its limits move.
//
// Times of one thread are processor time: what the work would take if nobody else had the core. Of
// several threads they are wall time, because the system brings the processor time of threads that
// run up to date only every few milliseconds. Rates and shares are those of the median call.
#pragma once

#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/kernel_table.h"
#include "sys/thread_pool.h"

namespace hadal::bench {

// A pool of that many threads, kept for the process.
ThreadPool& Pool(int num_threads);

struct Limits {
  double read_bytes_per_s;
  double ops_per_s;          // a multiplication and an addition count as two
  double integer_ops_per_s;  // of the set's products with 4-bit weights
};

Limits MeasureLimits(const KernelTable& kernels, ThreadPool* pool);

// Seconds so far of all threads of the pool together.
double ThreadSeconds(const ThreadPool& pool);

// What one call costs, for the counters.
struct Work {
  double bytes, ops;
};

// Sets the counters GB/s, Gop/s, read%, ops% and integer% from the times of the calls, in seconds
// of all threads together. Changes the order of `seconds`.
void Report(benchmark::State& state, const Work& work, const Limits& before, const Limits& after,
            const ThreadPool& pool, std::vector<double>* seconds);

// Runs body() until the benchmark has had enough, with a probe of the limits before and after.
template <class Body>
void RunAgainstLimits(benchmark::State& state, const KernelTable& kernels, ThreadPool* pool,
                      const Work& work, const Body& body) {
  const Limits before = MeasureLimits(kernels, pool);
  body();
  std::vector<double> seconds;
  for (auto _ : state) {
    const double start = ThreadSeconds(*pool);
    body();
    seconds.push_back(ThreadSeconds(*pool) - start);
  }
  const Limits after = MeasureLimits(kernels, pool);
  Report(state, work, before, after, *pool, &seconds);
}

}  // namespace hadal::bench
