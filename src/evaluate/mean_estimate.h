// A mean and how sure we may be of it.
#pragma once

#include <cmath>
#include <cstdint>

namespace hadal {

// Of independent draws. Welford's recurrence, so that large means do not swallow small spreads.
class MeanEstimate {
 public:
  void Add(double value) {
    ++count_;
    const double from_old = value - mean_;
    mean_ += from_old / static_cast<double>(count_);
    squares_ += from_old * (value - mean_);
  }

  int64_t count() const { return count_; }
  double mean() const { return mean_; }  // 0 of nothing
  // Standard error of the mean; 0 of fewer than two values.
  double error() const {
    if (count_ < 2) return 0.0;
    const auto n = static_cast<double>(count_);
    return std::sqrt(squares_ / (n - 1.0) / n);
  }

 private:
  int64_t count_ = 0;
  double mean_ = 0.0, squares_ = 0.0;
};

}  // namespace hadal
