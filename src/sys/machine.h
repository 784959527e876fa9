// What this machine is: processor features that the operating system lets us use, cores, memory.
#pragma once

#include <cstdint>
#include <string>

namespace hadal {

struct ProcessorFeatures {
  bool avx2_fma_f16c = false;  // all three, and the system saves their registers
  bool avx512 = false;         // F, BW, VL, DQ and VNNI together
};

ProcessorFeatures DetectProcessorFeatures();

// "AMD EPYC ..." or "unknown".
std::string ProcessorName();

// Cores that this process may run on.
int NumUsableCores();

// Bytes of memory in all, and those that could be had now; 0 when unknown.
int64_t TotalMemoryBytes();
int64_t AvailableMemoryBytes();

// "always", "madvise", "never", or "unknown".
std::string HugePagePolicy();

}  // namespace hadal
