#include "apps/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace hadal {
namespace {

constexpr int64_t kReadBytes = int64_t{512} << 20;
constexpr int64_t kProbeRounds = 400'000;
constexpr int kReadPasses = 4, kProbePasses = 12;

template <class Body>
double BestTime(int calls, const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int call = 0; call < calls; ++call) {
    const Clock::time_point start = Clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace

LimitProbe::LimitProbe(const KernelTable& kernels, int num_threads)
    : kernels_(kernels), pool_(num_threads), reader_(kReadBytes, &pool_) {}

MachineLimits LimitProbe::Measure() {
  static std::atomic<int64_t> kept;  // so that the probes' results have a use
  const double rounds = static_cast<double>(kProbeRounds) * pool_.num_threads();
  MachineLimits limits{.kernels = kernels_.name};
  limits.read_bytes_per_s =
      static_cast<double>(reader_.bytes()) / BestTime(kReadPasses, [&] { reader_.Pass(&pool_); });
  limits.multiply_add_ops_per_s =
      rounds * kProbeOps / BestTime(kProbePasses, [&] {
        pool_.ParallelFor(pool_.num_threads(), [&](int, int) {
          kept += static_cast<int64_t>(kernels_.multiply_add_probe(kProbeRounds));
        });
      });
  limits.integer_ops_per_s = rounds * kernels_.integer_probe_ops / BestTime(kProbePasses, [&] {
                               pool_.ParallelFor(pool_.num_threads(), [&](int, int) {
                                 kept += kernels_.integer_probe(kProbeRounds);
                               });
                             });
  return limits;
}

}  // namespace hadal
