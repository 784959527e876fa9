// The order of sums that every product keeps: eight lanes, then a fixed tree.
#pragma once

#include <cmath>

namespace hadal::reference {

struct LaneSum {
  float lanes[8] = {};

  // Adds x[i] * w[i] for i in [0, count). A row ends with zeros up to a multiple of eight, so all
  // calls but the last of a row take a multiple of eight.
  void AddProducts(const float* x, const float* w, int count) {
    for (int i = 0; i < count; ++i) lanes[i % 8] = std::fma(x[i], w[i], lanes[i % 8]);
    for (int i = count; i % 8 != 0; ++i) lanes[i % 8] = std::fma(0.0f, 0.0f, lanes[i % 8]);
  }

  float Total() const {
    const float even = (lanes[0] + lanes[4]) + (lanes[2] + lanes[6]);
    const float odd = (lanes[1] + lanes[5]) + (lanes[3] + lanes[7]);
    return even + odd;
  }
};

}  // namespace hadal::reference
