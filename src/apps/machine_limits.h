// The limits that speed is held against, measured at this moment: other programs share the machine
// and its limits move.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/kernel_table.h"
#include "sys/read_probe.h"
#include "sys/thread_pool.h"

namespace hadal {

struct MachineLimits {
  std::string_view kernels = {};  // the set that was measured
  double read_bytes_per_s = 0;
  double multiply_add_ops_per_s = 0;  // float32; a multiplication and an addition count as two
  double integer_ops_per_s = 0;       // of the kernel set's products with 4-bit weights
};

class LimitProbe {
 public:
  // Takes some hundred MB of memory. REQUIRES: num_threads >= 1.
  LimitProbe(const KernelTable& kernels, int num_threads);

  // The best of several short passes: about a quarter of a second.
  MachineLimits Measure();

 private:
  const KernelTable& kernels_;
  ThreadPool pool_;
  ReadProbe reader_;
};

}  // namespace hadal
