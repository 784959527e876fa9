// Eight floats in one register, and the operations that common/elementwise-inl.h wants.
// reference/vec.h says what each means.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace hadal::avx2 {
namespace {

using Vec = __m256;

constexpr int32_t kLaneMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

// All bits in lanes [0, n), 0 <= n <= 8.
inline __m256i MaskFirst(int n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kLaneMasks + 8 - n));
}

inline Vec Set(float x) { return _mm256_set1_ps(x); }
inline Vec Load(const float* p, int n) {
  return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, MaskFirst(n));
}
inline Vec LoadOr(const float* p, int n, Vec fill) {
  if (n >= 8) return _mm256_loadu_ps(p);
  const __m256i mask = MaskFirst(n);
  return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}
inline void Store(float* p, Vec a, int n) {
  if (n >= 8) {
    _mm256_storeu_ps(p, a);
  } else {
    _mm256_maskstore_ps(p, MaskFirst(n), a);
  }
}
inline Vec KeepFirst(Vec a, int n) {
  return n >= 8 ? a : _mm256_and_ps(a, _mm256_castsi256_ps(MaskFirst(n)));
}

inline Vec Add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec Sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
inline Vec Mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
inline Vec Div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
inline Vec MulAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
inline Vec Sqrt(Vec a) { return _mm256_sqrt_ps(a); }
inline Vec Max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec Min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
inline Vec MaxOrNan(Vec a, Vec b) {
  return _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
inline Vec NegAbs(Vec a) { return _mm256_or_ps(a, _mm256_set1_ps(-0.0f)); }
inline Vec SelectBySign(Vec a, Vec if_negative, Vec otherwise) {
  return _mm256_blendv_ps(otherwise, if_negative, a);
}
inline Vec PowerOfTwo(Vec n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}

inline float Sum(Vec a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The sums of four vectors, each as Sum() forms it.
inline __m128 SumEach(Vec a, Vec b, Vec c, Vec d) {
  const __m128 a4 = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 b4 = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 c4 = _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
  const __m128 d4 = _mm_add_ps(_mm256_castps256_ps128(d), _mm256_extractf128_ps(d, 1));
  // Lanes a0+a2, b0+b2, a1+a3, b1+b3, and the same of c and d.
  const __m128 ab = _mm_add_ps(_mm_unpacklo_ps(a4, b4), _mm_unpackhi_ps(a4, b4));
  const __m128 cd = _mm_add_ps(_mm_unpacklo_ps(c4, d4), _mm_unpackhi_ps(c4, d4));
  return _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
}

inline float LargestLane(Vec a) {
  const Vec four = MaxOrNan(a, _mm256_permute2f128_ps(a, a, 1));
  const Vec two = MaxOrNan(four, _mm256_permute_ps(four, 0x4E));  // lanes 2, 3, 0, 1 of each half
  return _mm256_cvtss_f32(MaxOrNan(two, _mm256_permute_ps(two, 0xB1)));  // lanes 1, 0, 3, 2
}

}  // namespace
}  // namespace hadal::avx2
