// What this machine is and how fast it is, as far as it matters to hadal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sys/machine.h"

namespace hadal {

struct KernelSetReport {
  std::string name;
  bool is_usable = false;
  std::string faulty_kernel;  // empty when the self-test passed or the set is not usable
  double ops_per_s = 0;       // of all cores, on registers alone; 0 when not usable
};

struct MachineReport {
  std::string cpu;
  int num_cores = 0;
  ProcessorFeatures features;
  std::vector<KernelSetReport> kernels;  // from the slowest to the fastest
  int64_t memory_bytes = 0, available_bytes = 0, cache_bytes = 0;
  std::string huge_pages;              // policy of transparent huge pages
  double read_bytes_per_s = 0;         // all cores; 0 when there was no memory for the buffer
  double read_bytes_per_s_single = 0;  // one core
};

// Tests and measures: half a second at most.
MachineReport ExamineMachine();

// What its owner could change to make hadal faster or safer, one sentence each; empty when nothing.
std::vector<std::string> AdviceFor(const MachineReport& report);

}  // namespace hadal
