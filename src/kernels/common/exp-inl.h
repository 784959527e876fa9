// e^x of each lane of a Vec of any width, with the same bits in all sets. Included inside the
// unnamed namespace of a set; includes nothing itself. REQUIRES of the set: Vec, Set, Add, Sub,
// Mul, MulAdd, Max, Min, PowerOfTwo (reference/vec.h says what each means).

// e^x with an error below one unit in the last place, subnormal results included.
//   n = round(x / ln 2), r = x - n ln 2 in two pieces, e^x = 2^n e^r.
// e^-inf = 0, e^+inf = inf, NaN stays NaN.
Vec Exp(Vec x) {
  // Beyond these the result is infinite or zero anyway. The operand that may be NaN comes second.
  x = Min(Set(89.0f), Max(Set(-105.0f), x));
  // Adding and subtracting 1.5 * 2^23 rounds to an integer, ties to even.
  const Vec magic = Set(12582912.0f);
  const Vec n = Sub(MulAdd(x, Set(1.44269504f), magic), magic);
  // ln 2 = 0.693359375 - 2.12194440e-4; the first has nine bits, so n times it is exact.
  Vec r = MulAdd(n, Set(-0.693359375f), x);
  r = MulAdd(n, Set(2.12194440e-4f), r);
  // Taylor's coefficients with the last ones adjusted to |r| <= 0.347 (Cephes, expf).
  Vec p = Set(1.9875691500e-4f);
  p = MulAdd(p, r, Set(1.3981999507e-3f));
  p = MulAdd(p, r, Set(8.3334519073e-3f));
  p = MulAdd(p, r, Set(4.1665795894e-2f));
  p = MulAdd(p, r, Set(1.6666665459e-1f));
  p = MulAdd(p, r, Set(5.0000001201e-1f));
  p = MulAdd(p, Mul(r, r), r);
  p = Add(p, Set(1.0f));
  // n reaches from -151 to 128, so 2^n is applied in two factors; only the last product rounds.
  const Vec half = Sub(MulAdd(n, Set(0.5f), magic), magic);
  return Mul(Mul(p, PowerOfTwo(half)), PowerOfTwo(Sub(n, half)));
}
