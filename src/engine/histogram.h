// How often values of which size came: counts between fixed bounds, as Prometheus wants them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hadal {

// `N` bounds in ascending order; a value counts in the first bucket whose bound is not below it.
template <size_t N>
struct Histogram {
  std::array<double, N> bounds;
  std::array<int64_t, N + 1> counts = {};  // the last: above all bounds
  double sum = 0;

  void Add(double value) {
    const auto place = std::ranges::lower_bound(bounds, value);
    ++counts[static_cast<size_t>(place - bounds.begin())];
    sum += value;
  }
};

// A histogram with any number of bounds, for who only reads.
struct HistogramView {
  std::span<const double> bounds;
  std::span<const int64_t> counts;
  double sum = 0;

  HistogramView() = default;
  template <size_t N>
  HistogramView(const Histogram<N>& histogram)  // NOLINT: implicit on purpose
      : bounds(histogram.bounds), counts(histogram.counts), sum(histogram.sum) {}
};

// Seconds from a millisecond to ten minutes: a step of a small model, a long prompt on a slow
// machine.
inline constexpr std::array<double, 18> kSecondsBounds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
using SecondsHistogram = Histogram<kSecondsBounds.size()>;

inline constexpr std::array<double, 16> kTokensBounds = {
    1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144};
using TokensHistogram = Histogram<kTokensBounds.size()>;

}  // namespace hadal
