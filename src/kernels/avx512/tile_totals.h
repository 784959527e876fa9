// What a row has summed up for the sixteen outputs of a tile.
#pragma once

#include "kernels/avx512/ints.h"
#include "tensor/block_layout.h"

namespace hadal::avx512 {
namespace {

// The first `num_outputs` of totals [16] as a product's results.
HADAL_INLINE void WriteTotals(const float* totals, int num_outputs, bool accumulate, float* out) {
  if (num_outputs <= 0) return;
  const __mmask16 lanes = FirstLanes(num_outputs);
  __m512 sum = _mm512_load_ps(totals);
  if (accumulate) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, out), sum);
  _mm512_mask_storeu_ps(out, lanes, sum);
}

}  // namespace
}  // namespace hadal::avx512
