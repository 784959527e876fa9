#include "apps/progress.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace hadal {

ProgressLine::ProgressLine(std::string what, int64_t total, std::string unit)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      is_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Clear() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
  is_shown_ = false;
}

void ProgressLine::Show(int64_t done) {
  const Clock::time_point now = Clock::now();
  if (!is_terminal_ || now - start_ < std::chrono::seconds(1) ||
      now - last_ < std::chrono::milliseconds(100)) {
    return;
  }
  last_ = now;
  is_shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0.0;
  fmt::print(stderr, "\r\x1b[K{}: {} of {} {}, {:.1f} {}/s, {:.0f} s left", what_, done, total_,
             unit_, rate, unit_, left);
  std::fflush(stderr);
}

}  // namespace hadal
