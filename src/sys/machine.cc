#include "sys/machine.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

#include <sched.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hadal {
namespace {

// The value of a "key: value" line of a /proc file, or empty.
std::string ProcValue(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return {};
}

int64_t MemInfoBytes(const std::string& key) {
  std::istringstream value(ProcValue("/proc/meminfo", key));
  int64_t kib = 0;
  value >> kib;
  return kib * 1024;
}

#if defined(__x86_64__)
// By its bit: the builtin of older clangs does not know the name. Registers are AVX's, so what the
// operating system allows for AVX2 holds here too.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

// The first line of a small file, or empty.
std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The whole of `text` as a number, or 0.
int64_t ToNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// What the control group allows; 0 when it sets no limit ("max") or there is none.
int64_t ControlGroupMemoryBytes() { return ToNumber(FirstLine("/sys/fs/cgroup/memory.max")); }

int NumCoresOfAffinity() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores < 1 ? 1 : static_cast<int>(cores);
}

}  // namespace

ProcessorFeatures DetectProcessorFeatures() {
  ProcessorFeatures features;
#if defined(__x86_64__)
  // The compiler's support library asks the operating system (XGETBV) as well as the processor.
  __builtin_cpu_init();
  features.avx2_fma_f16c =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && HasF16c();
  features.avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vnni") != 0;
#endif
  return features;
}

std::string ProcessorName() {
  std::string name = ProcValue("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

int CoresOfQuota(std::string_view cpu_max) {
  const size_t space = cpu_max.find(' ');
  if (space == std::string_view::npos) return 0;
  const int64_t quota_us = ToNumber(cpu_max.substr(0, space));
  const int64_t period_us = ToNumber(cpu_max.substr(space + 1));
  if (quota_us <= 0 || period_us <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((quota_us - 1) / period_us + 1, 1 << 20));
}

int NumUsableCores() {
  const int cores = std::max(1, NumCoresOfAffinity());
  const int quota = CoresOfQuota(FirstLine("/sys/fs/cgroup/cpu.max"));
  return quota == 0 ? cores : std::min(cores, quota);
}

int64_t LastCacheBytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (int name : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    const long bytes = sysconf(name);
    if (bytes > 0) return bytes;
  }
#endif
  return 0;
}

int64_t TotalMemoryBytes() {
  const int64_t machine = MemInfoBytes("MemTotal");
  const int64_t group = ControlGroupMemoryBytes();
  return group > 0 && group < machine ? group : machine;
}
int64_t AvailableMemoryBytes() { return MemInfoBytes("MemAvailable"); }

std::string HugePagePolicy() {
  const std::string line = FirstLine("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "unknown";
  return line.substr(open + 1, close - open - 1);
}

}  // namespace hadal
