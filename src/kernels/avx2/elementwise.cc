// The element-wise kernels over 256-bit vectors.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/vec.h"

namespace hadal::avx2 {
namespace {

#include "kernels/common/elementwise-inl.h"

void RopeInterleaved(float* x, const float* cos, const float* sin, int size) {
  int i = 0;
  for (; i + 8 <= size; i += 8) {
    const Vec pairs = _mm256_loadu_ps(x + i);
    // Four angles, each for two lanes.
    const __m128 c4 = _mm_loadu_ps(cos + i / 2), s4 = _mm_loadu_ps(sin + i / 2);
    const Vec c = _mm256_set_m128(_mm_unpackhi_ps(c4, c4), _mm_unpacklo_ps(c4, c4));
    const Vec s = _mm256_set_m128(_mm_unpackhi_ps(s4, s4), _mm_unpacklo_ps(s4, s4));
    const Vec swapped = _mm256_permute_ps(pairs, 0xB1);
    // Even lanes a c - b s, odd lanes b c + a s.
    _mm256_storeu_ps(x + i, _mm256_addsub_ps(Mul(pairs, c), Mul(swapped, s)));
  }
  for (; i + 1 < size; i += 2) {
    const float a = x[i], b = x[i + 1], c = cos[i / 2], s = sin[i / 2];
    x[i] = a * c - b * s;
    x[i + 1] = b * c + a * s;
  }
}

// Twelve chains hide the latency of a fused multiply-add (four cycles, two a cycle).
float MultiplyAddProbe(int64_t rounds) {
  Vec sums[12];
  // Different numbers, lest the compiler keep one chain for all.
  for (int k = 0; k < 12; ++k) sums[k] = Set(static_cast<float>(k));
  const Vec half = Set(0.5f), one = Set(1.0f);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < 12; ++k) sums[k] = MulAdd(sums[k], half, one);
  }
  Vec total = sums[0];
  for (int k = 1; k < 12; ++k) total = Add(total, sums[k]);
  return Sum(total);
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

}  // namespace hadal::avx2
