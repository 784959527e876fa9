// What the machine can do at this moment: benchmarks measure it right beside their own time,
// because other programs share the machine and its limits move.
//
// Times are processor time divided by the number of threads: the time that the work would take if
// nobody else had the cores. Waiting of the pool's workers counts, since they spin. Rates and
// shares are those of the median call.
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

// Seconds of processor time of this process so far.
double ProcessorSeconds();

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
    const double start = ProcessorSeconds();
    body();
    seconds.push_back(ProcessorSeconds() - start);
  }
  const Limits after = MeasureLimits(kernels, pool);
  Report(state, work, before, after, *pool, &seconds);
}

}  // namespace hadal::bench
