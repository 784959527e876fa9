// What a row has summed up for the sixteen outputs of a tile.
#pragma once

#include "kernels/avx2/ints.h"
#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

// The first `num_outputs` of totals [16], aligned to 32, as a product's results.
inline void WriteTotals(const float* totals, int num_outputs, bool accumulate, float* out) {
  for (int half = 0; half < 2; ++half) {
    const int count = Least(8, num_outputs - 8 * half);
    if (count <= 0) return;
    float* at = out + 8 * half;
    const Vec sum = _mm256_load_ps(totals + 8 * half);
    Store(at, accumulate ? Add(Load(at, count), sum) : sum, count);
  }
}

}  // namespace
}  // namespace hadal::avx2
