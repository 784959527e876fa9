// The element-wise kernels in plain loops.
#include "kernels/reference/parts.h"
#include "kernels/reference/vec.h"

namespace hadal::reference {
namespace {

#include "kernels/common/elementwise-inl.h"

void RopeInterleaved(float* x, const float* cos, const float* sin, int size) {
  for (int i = 0; i + 1 < size; i += 2) {
    const float a = x[i], b = x[i + 1], c = cos[i / 2], s = sin[i / 2];
    x[i] = a * c - b * s;
    x[i + 1] = b * c + a * s;
  }
}

}  // namespace

void AddElementwise(KernelTable* table) {
  table->rms_norm = RmsNorm;
  table->layer_norm = LayerNorm;
  table->silu_mul = SiluMul;
  table->add_scaled = AddScaled;
  table->rope_interleaved = RopeInterleaved;
  table->rope_half_split = RopeHalfSplit;
  table->max = MaxOf;
  table->exp_and_sum = ExpAndSum;
  table->scale = Scale;
}

}  // namespace hadal::reference
