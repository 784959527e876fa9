// What this machine is: processor features that the operating system lets us use, cores, memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hadal {

struct ProcessorFeatures {
  bool avx2_fma_f16c = false;  // all three, and the system saves their registers
  bool avx512 = false;         // F, BW, VL, DQ and VNNI together
};

ProcessorFeatures DetectProcessorFeatures();

// "AMD EPYC ..." or "unknown".
std::string ProcessorName();

// Cores that this process may run on: those of its affinity, or fewer where its control group has a
// quota. At least 1.
int NumUsableCores();

// Whole cores that a control group's cpu.max ("200000 100000", "max 100000") allows, rounded up; 0
// when it sets no limit or is not understood.
int CoresOfQuota(std::string_view cpu_max);

// Bytes of the last cache before memory; 0 when unknown.
int64_t LastCacheBytes();

// Bytes of memory in all (or those that the control group allows), and those that could be had now;
// 0 when unknown.
int64_t TotalMemoryBytes();
int64_t AvailableMemoryBytes();

// "always", "madvise", "never", or "unknown".
std::string HugePagePolicy();

}  // namespace hadal
