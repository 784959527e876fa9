// Bodies of the element-wise kernels over a Vec of eight floats, so that all sets agree to the bit.
// Included inside the unnamed namespace of a set, after its vec.h; includes only its own kind.
// REQUIRES of the set: Vec, Set, Load, LoadOr, Store, KeepFirst, Add, Sub, Mul, Div, MulAdd, Sqrt,
// Max, Min, MaxOrNan, NegAbs, SelectBySign, PowerOfTwo, Sum, LargestLane (reference/vec.h says what
// each means).

constexpr int kLanes = 8;

#include "kernels/common/exp-inl.h"

float SumOfSquares(const float* x, int size) {
  Vec sum = Set(0.0f);
  for (int i = 0; i < size; i += kLanes) {
    const Vec v = Load(x + i, size - i);
    sum = MulAdd(v, v, sum);
  }
  return Sum(sum);
}

// 1 / sqrt(mean + eps), where mean = sum / size.
Vec InverseRoot(float sum, int size, float eps) {
  const Vec mean = Div(Set(sum), Set(static_cast<float>(size)));
  return Div(Set(1.0f), Sqrt(Add(mean, Set(eps))));
}

void RmsNorm(const float* x, const float* gain, int size, float eps, float* out) {
  const Vec factor = InverseRoot(SumOfSquares(x, size), size, eps);
  for (int i = 0; i < size; i += kLanes) {
    const int n = size - i;
    Store(out + i, Mul(Mul(Load(x + i, n), factor), Load(gain + i, n)), n);
  }
}

void LayerNorm(const float* x, const float* gain, const float* bias, int size, float eps,
               float* out) {
  Vec sum = Set(0.0f);
  for (int i = 0; i < size; i += kLanes) sum = Add(sum, Load(x + i, size - i));
  const Vec mean = Div(Set(Sum(sum)), Set(static_cast<float>(size)));
  Vec squares = Set(0.0f);
  for (int i = 0; i < size; i += kLanes) {
    const Vec d = KeepFirst(Sub(Load(x + i, size - i), mean), size - i);
    squares = MulAdd(d, d, squares);
  }
  const Vec factor = InverseRoot(Sum(squares), size, eps);
  for (int i = 0; i < size; i += kLanes) {
    const int n = size - i;
    const Vec normed = Mul(Sub(Load(x + i, n), mean), factor);
    Store(out + i, MulAdd(normed, Load(gain + i, n), Load(bias + i, n)), n);
  }
}

// silu(x) = x / (1 + e^-x) for x >= 0 and x e^x / (1 + e^x) below, so that nothing overflows.
void SiluMul(const float* gate, const float* up, int size, float* out) {
  for (int i = 0; i < size; i += kLanes) {
    const int n = size - i;
    const Vec x = Load(gate + i, n);
    const Vec e = Exp(NegAbs(x));
    const Vec silu = Div(SelectBySign(x, Mul(x, e), x), Add(Set(1.0f), e));
    Store(out + i, Mul(silu, Load(up + i, n)), n);
  }
}

void AddScaled(const float* x, float factor, int size, float* out) {
  const Vec f = Set(factor);
  for (int i = 0; i < size; i += kLanes) {
    const int n = size - i;
    Store(out + i, MulAdd(Load(x + i, n), f, Load(out + i, n)), n);
  }
}

void RopeHalfSplit(float* x, const float* cos, const float* sin, int size) {
  const int half = size / 2;
  for (int i = 0; i < half; i += kLanes) {
    const int n = half - i;
    const Vec a = Load(x + i, n), b = Load(x + half + i, n);
    const Vec c = Load(cos + i, n), s = Load(sin + i, n);
    Store(x + i, Sub(Mul(a, c), Mul(b, s)), n);
    Store(x + half + i, Add(Mul(b, c), Mul(a, s)), n);
  }
}

// NaN anywhere gives NaN.
float MaxOf(const float* x, int size) {
  Vec largest = Set(x[0]);
  for (int i = 0; i < size; i += kLanes) {
    largest = MaxOrNan(LoadOr(x + i, size - i, largest), largest);
  }
  return LargestLane(largest);
}

float ExpAndSum(float* x, int size, float shift) {
  const Vec s = Set(shift);
  Vec sum = Set(0.0f);
  for (int i = 0; i < size; i += kLanes) {
    const int n = size - i;
    const Vec e = KeepFirst(Exp(Sub(Load(x + i, n), s)), n);
    Store(x + i, e, n);
    sum = Add(sum, e);
  }
  return Sum(sum);
}

void Scale(float* x, float factor, int size) {
  const Vec f = Set(factor);
  for (int i = 0; i < size; i += kLanes) Store(x + i, Mul(Load(x + i, size - i), f), size - i);
}
