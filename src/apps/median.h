// The middle of some measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace hadal {

// The upper one of an even number; 0 of none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace hadal
