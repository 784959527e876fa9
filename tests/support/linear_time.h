// Holds work to linear growth without trusting any clock's absolute reading.
#pragma once

#include <ctime>
#include <functional>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <gtest/gtest.h>

namespace hadal {

// Processor time of the calling thread, in seconds: what other programs do hardly stretches it.
inline double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Memory that was freed stays with the process: on some virtual machines the page faults of memory
// that is taken anew cost ten times the work itself, and only the larger one takes so much.
inline void KeepFreedMemory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// Fails when `work(16 * size)` costs more than 64 times `work(size)`: linear work costs 16 times,
// quadratic work 256 times. What is done in 20 ms is not looked at closer, and a disturbed
// measurement is repeated, so that only growth that shows every time fails. REQUIRES: 16 * size is
// large enough for quadratic work to take far more than 20 ms.
inline ::testing::AssertionResult GrowsLinearly(const std::function<void(int)>& work, int size) {
  constexpr int kAttempts = 5;
  KeepFreedMemory();
  double small = 0, large = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    double start = ThreadSeconds();
    work(16 * size);
    large = ThreadSeconds() - start;
    if (large < 0.02) return ::testing::AssertionSuccess();
    start = ThreadSeconds();
    work(size);
    small = ThreadSeconds() - start;
    if (large < 64 * small) return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "size " << size << " took " << small << " s, 16 times of it " << large << " s";
}

}  // namespace hadal
