// Counts allocations of the calling thread, to show that a step makes none. A test binary that
// links alloc_guard.cc has its operator new replaced.
#pragma once

#include <cstdint>

namespace hadal {

// Calls of operator new on this thread since the guard was made.
class AllocGuard {
 public:
  AllocGuard() : start_(Total()) {}
  int64_t count() const { return Total() - start_; }

 private:
  static int64_t Total();
  int64_t start_;
};

}  // namespace hadal
