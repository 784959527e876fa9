#include "apps/machine_report.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "apps/units.h"
#include "kernels/dispatch.h"
#include "kernels/self_test.h"
#include "sys/read_probe.h"
#include "sys/thread_pool.h"

namespace hadal {
namespace {

// Seconds of the fastest of several calls, for about `budget_s` seconds: other programs may take
// the cores at any time, and the question is what the machine can do.
template <class Body>
double BestTime(double budget_s, const Body& body) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  double best = 1e9;
  std::chrono::duration<double> elapsed{0};
  do {
    const Clock::time_point start = Clock::now();
    body();
    const Clock::time_point end = Clock::now();
    best = std::min(best, std::chrono::duration<double>(end - start).count());
    elapsed = end - begin;
  } while (elapsed.count() < budget_s);
  return best;
}

double MeasureOps(const KernelTable& kernels, ThreadPool* pool) {
  // Short enough to fall between interruptions; the reference set is a hundred times slower.
  int64_t rounds = 200;
  double seconds = 0;
  float kept = 0;
  do {
    rounds *= 4;
    seconds = BestTime(0, [&] { kept += kernels.multiply_add_probe(rounds); });
  } while (seconds < 5e-4);
  const double best = BestTime(0.04, [&] {
    pool->ParallelFor(pool->num_threads(),
                      [&](int, int) { (void)kernels.multiply_add_probe(rounds); });
  });
  // `kept` is finite and not negative, always: the calls above have a use.
  return kept < 0 ? 0 : static_cast<double>(rounds) * kProbeOps * pool->num_threads() / best;
}

std::vector<KernelSetReport> ExamineKernels(ThreadPool* pool) {
  std::vector<KernelSetReport> reports;
  for (const KernelSet& set : BuiltKernelSets()) {
    KernelSetReport report;
    report.name = set.name;
    report.is_usable = set.table != nullptr;
    if (report.is_usable) {
      report.faulty_kernel = FindFaultyKernel(*set.table, *UsableKernels().front());
      report.ops_per_s = MeasureOps(*set.table, pool);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

void MeasureReading(ThreadPool* pool, MachineReport* report) {
  // Several times what the caches hold, and a fraction of the memory that is free.
  const int64_t wanted = std::max(int64_t{128} << 20, report->cache_bytes * 3);
  const int64_t bytes = std::min(wanted, report->available_bytes / 4);
  if (bytes < int64_t{16} << 20) return;
  ReadProbe probe(bytes, pool);
  if (probe.bytes() == 0) return;
  const auto rate = [&](double seconds) { return static_cast<double>(probe.bytes()) / seconds; };
  report->read_bytes_per_s = rate(BestTime(0.12, [&] { probe.Pass(pool); }));
  ThreadPool single(1);
  report->read_bytes_per_s_single = rate(BestTime(0.08, [&] { probe.Pass(&single); }));
  // With a second worker that never runs, the pool is no faster than one core.
  report->read_bytes_per_s = std::max(report->read_bytes_per_s, report->read_bytes_per_s_single);
}

}  // namespace

MachineReport ExamineMachine() {
  MachineReport report;
  report.cpu = ProcessorName();
  report.num_cores = NumUsableCores();
  report.features = DetectProcessorFeatures();
  report.memory_bytes = TotalMemoryBytes();
  report.available_bytes = AvailableMemoryBytes();
  report.cache_bytes = LastCacheBytes();
  report.huge_pages = HugePagePolicy();
  ThreadPool pool(report.num_cores);
  report.kernels = ExamineKernels(&pool);
  MeasureReading(&pool, &report);
  return report;
}

std::vector<std::string> AdviceFor(const MachineReport& report) {
  std::vector<std::string> advice;
  const KernelSetReport* best = nullptr;
  for (const KernelSetReport& set : report.kernels) {
    if (set.is_usable) best = &set;
    if (set.faulty_kernel.empty()) continue;
    advice.push_back(fmt::format(
        "Kernel set {} computes {} wrongly on this processor: use --kernels reference, and please "
        "report it with the name of the processor.",
        set.name, set.faulty_kernel));
  }
  if (best != nullptr && best->name == "reference") {
    advice.push_back(
        "No vector kernels can run here, so everything is some fifty times slower than it could "
        "be: "
        "use a processor with AVX2, FMA and F16C. In a virtual machine, let the guest see the "
        "host's processor features.");
  }
  if (report.huge_pages == "never") {
    advice.push_back(
        "Transparent huge pages are off; weights and caches are read up to a quarter slower: "
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  }
  if (report.available_bytes > 0 && report.available_bytes < int64_t{1} << 30) {
    advice.push_back(
        fmt::format("Only {} of memory are free: close other programs, or use a "
                    "smaller model.",
                    FormatBytes(report.available_bytes)));
  }
  if (report.num_cores > 1 && report.read_bytes_per_s > 0 &&
      report.read_bytes_per_s < 1.15 * report.read_bytes_per_s_single) {
    advice.push_back(
        "All cores together read memory hardly faster than one: other programs may be using the "
        "machine, or few memory channels are filled. Decoding is bound by this.");
  }
  return advice;
}

}  // namespace hadal
