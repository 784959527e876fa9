// Eight floats in plain loops: the Vec of the reference set. Every operation rounds exactly as the
// vector instruction of the same name does.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hadal::reference {

struct Vec {
  float v[8];
};

template <class Op>
Vec Map(const Op& op) {
  Vec result;
  for (int i = 0; i < 8; ++i) result.v[i] = op(i);
  return result;
}

inline Vec Set(float x) {
  return Map([&](int) { return x; });
}
// The first n floats at p, 1 <= n; lanes from n on are zero. Nothing else is read.
inline Vec Load(const float* p, int n) {
  return Map([&](int i) { return i < n ? p[i] : 0.0f; });
}
// The same with the lanes of `fill` instead of zeros.
inline Vec LoadOr(const float* p, int n, Vec fill) {
  return Map([&](int i) { return i < n ? p[i] : fill.v[i]; });
}
inline void Store(float* p, Vec a, int n) {
  for (int i = 0; i < 8 && i < n; ++i) p[i] = a.v[i];
}
// Lanes from n on become zero.
inline Vec KeepFirst(Vec a, int n) {
  return Map([&](int i) { return i < n ? a.v[i] : 0.0f; });
}

inline Vec Add(Vec a, Vec b) {
  return Map([&](int i) { return a.v[i] + b.v[i]; });
}
inline Vec Sub(Vec a, Vec b) {
  return Map([&](int i) { return a.v[i] - b.v[i]; });
}
inline Vec Mul(Vec a, Vec b) {
  return Map([&](int i) { return a.v[i] * b.v[i]; });
}
inline Vec Div(Vec a, Vec b) {
  return Map([&](int i) { return a.v[i] / b.v[i]; });
}
// a * b + c, rounded once.
inline Vec MulAdd(Vec a, Vec b, Vec c) {
  return Map([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
}
inline Vec Sqrt(Vec a) {
  return Map([&](int i) { return std::sqrt(a.v[i]); });
}
// The second where the two are equal or one is NaN.
inline Vec Max(Vec a, Vec b) {
  return Map([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Vec Min(Vec a, Vec b) {
  return Map([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
// NaN where either is.
inline Vec MaxOrNan(Vec a, Vec b) {
  return Map([&](int i) { return std::isnan(a.v[i]) || a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
// -|a|.
inline Vec NegAbs(Vec a) {
  return Map(
      [&](int i) { return std::bit_cast<float>(std::bit_cast<uint32_t>(a.v[i]) | 0x80000000u); });
}
// `if_negative` where the sign bit of `a` is set, else `otherwise`.
inline Vec SelectBySign(Vec a, Vec if_negative, Vec otherwise) {
  return Map([&](int i) { return std::signbit(a.v[i]) ? if_negative.v[i] : otherwise.v[i]; });
}
// 2^n for n integral in [-126, 127]; anything for others.
inline Vec PowerOfTwo(Vec n) {
  return Map([&](int i) {
    const float lane = n.v[i] >= -126.0f && n.v[i] <= 127.0f ? n.v[i] : 0.0f;
    return std::bit_cast<float>(static_cast<uint32_t>(static_cast<int>(lane) + 127) << 23);
  });
}
// ((0+4)+(2+6)) + ((1+5)+(3+7)).
inline float Sum(Vec a) {
  const float* v = a.v;
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// The largest lane; NaN when one of them is.
inline float LargestLane(Vec a) {
  const Vec four = MaxOrNan(a, Map([&](int i) { return a.v[(i + 4) % 8]; }));
  const Vec two = MaxOrNan(four, Map([&](int i) { return four.v[(i + 2) % 8]; }));
  return MaxOrNan(two, Map([&](int i) { return two.v[(i + 1) % 8]; })).v[0];
}

}  // namespace hadal::reference
