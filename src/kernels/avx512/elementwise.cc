// The element-wise kernels that exponentials bound. The sums have eight lanes, as in all sets.
#include <cstdint>

#include <immintrin.h>

#include "kernels/avx512/ints.h"
#include "kernels/avx512/parts.h"

namespace hadal::avx512 {
namespace {

using Vec = __m512;

HADAL_INLINE Vec Set(float x) { return _mm512_set1_ps(x); }
HADAL_INLINE Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
HADAL_INLINE Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
HADAL_INLINE Vec Mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
HADAL_INLINE Vec MulAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
HADAL_INLINE Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
HADAL_INLINE Vec Min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
HADAL_INLINE Vec PowerOfTwo(Vec n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
}

#include "kernels/common/exp-inl.h"

// silu(x) = x / (1 + e^-x) for x >= 0 and x e^x / (1 + e^x) below, so that nothing overflows.
void SiluMul(const float* gate, const float* up, int size, float* out) {
  for (int i = 0; i < size; i += 16) {
    const __mmask16 lanes = FirstLanes(size - i);
    const Vec x = _mm512_maskz_loadu_ps(lanes, gate + i);
    const Vec e = Exp(_mm512_or_ps(x, Set(-0.0f)));
    const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(x));
    const Vec numerator = _mm512_mask_mul_ps(x, negative, x, e);
    const Vec silu = _mm512_div_ps(numerator, Add(Set(1.0f), e));
    _mm512_mask_storeu_ps(out + i, lanes, Mul(silu, _mm512_maskz_loadu_ps(lanes, up + i)));
  }
}

// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)), as all sums of eight lanes.
HADAL_INLINE float SumOfEight(__m256 a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

HADAL_INLINE void AddToSum(Vec e, __m256* sum) {
  *sum = _mm256_add_ps(*sum, _mm512_castps512_ps256(e));
  *sum = _mm256_add_ps(*sum, _mm512_extractf32x8_ps(e, 1));
}

float ExpAndSum(float* x, int size, float shift) {
  constexpr int kAtOnce = 4;  // whose chains of operations run beside each other
  __m256 sum = _mm256_setzero_ps();
  int i = 0;
  for (; i + 16 * kAtOnce <= size; i += 16 * kAtOnce) {
    Vec e[kAtOnce];
#pragma GCC unroll 4
    for (int v = 0; v < kAtOnce; ++v) e[v] = Sub(_mm512_loadu_ps(x + i + 16 * v), Set(shift));
#pragma GCC unroll 4
    for (int v = 0; v < kAtOnce; ++v) e[v] = Exp(e[v]);
#pragma GCC unroll 4
    for (int v = 0; v < kAtOnce; ++v) {
      _mm512_storeu_ps(x + i + 16 * v, e[v]);
      AddToSum(e[v], &sum);
    }
  }
  for (; i < size; i += 16) {
    const __mmask16 lanes = FirstLanes(size - i);
    const Vec shifted = Sub(_mm512_maskz_loadu_ps(lanes, x + i), Set(shift));
    const Vec e = _mm512_maskz_mov_ps(lanes, Exp(shifted));
    _mm512_mask_storeu_ps(x + i, lanes, e);
    AddToSum(e, &sum);
  }
  return SumOfEight(sum);
}

}  // namespace

void AddElementwise(KernelTable* table) {
  table->silu_mul = SiluMul;
  table->exp_and_sum = ExpAndSum;
}

}  // namespace hadal::avx512
