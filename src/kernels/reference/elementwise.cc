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

float MultiplyAddProbe(int64_t rounds) {
  Vec sums[12] = {};
  for (int64_t i = 0; i < rounds; ++i) {
    for (Vec& sum : sums) sum = MulAdd(sum, Set(0.5f), Set(1.0f));
  }
  float total = 0;
  for (const Vec& sum : sums) total += Sum(sum);
  return total;
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
  table->multiply_add_probe = MultiplyAddProbe;
}

}  // namespace hadal::reference
