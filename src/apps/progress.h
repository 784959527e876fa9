// One line on standard error that shows how far long work is, with rate and time left. Silent where
// standard error is not a terminal and for work that ends within a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hadal {

class ProgressLine {
 public:
  // `unit` names what is counted: "tokens", "GB".
  ProgressLine(std::string what, int64_t total, std::string unit);
  ~ProgressLine();  // clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // At most ten times a second; more calls are cheap.
  void Show(int64_t done);

  void Clear();  // before results are printed

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_, unit_;
  int64_t total_;
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace hadal
