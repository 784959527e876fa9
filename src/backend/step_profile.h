// Where the time of steps goes, operation by operation.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace hadal {

class StepProfile {
 public:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    std::string name;  // "attention", "matmul 3072x2048", ...
    int64_t calls = 0;
    double seconds = 0;
  };

  // Adds one call of an operation that began at `start` and ends now.
  void Add(std::string_view name, Clock::time_point start);
  // Forgets all calls so far.
  void Clear();

  // The operations that were called, the longest first.
  std::vector<Entry> entries() const;
  double total_seconds() const;

  // The calls themselves, at most the first million, as a trace that Perfetto and Chrome open.
  Json AsTrace() const;

 private:
  struct Event {
    int entry = 0;
    double start_us = 0, duration_us = 0;
  };
  std::vector<Entry> entries_;
  std::vector<Event> events_;
  Clock::time_point origin_ = Clock::now();
};

}  // namespace hadal
