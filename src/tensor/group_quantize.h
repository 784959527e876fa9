// Rounding a group of values to codes that share a scale: round-to-nearest, the floor that better
// choices of scales are measured against. Specification, 7.4 and 7.6.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hadal {

struct QuantizedGroup {
  double scale = 0.0;
  int zero_point = 0;      // value = (code - zero_point) * scale
  std::vector<int> codes;  // one per value
  double value(size_t i) const { return (codes[i] - zero_point) * scale; }
};

// Ties go to the even code, as in the specification, whose examples are in double precision.
// Codes 0 .. 15 with a zero point: scale = (max - min) / 15 over the values and zero. All-zero
// groups have scale 0.
QuantizedGroup QuantizeAsymmetricInt4(std::span<const double> values);

// Codes -7 .. 7: scale = largest magnitude / 7.
QuantizedGroup QuantizeSymmetricInt4(std::span<const double> values);

enum class ActivationScale { kFloat, kPowerOfTwo };

struct QuantizedActivations {
  float scale = 0.0f;
  std::vector<uint8_t> codes;  // E4M3FN
};

// One group of activations to FP8: scale = max(largest magnitude, 1e-4) / 448, rounded up to a
// power of two when asked.
QuantizedActivations QuantizeActivationsE4m3(std::span<const float> values, ActivationScale kind);

// x = H x, with the orthonormal Walsh-Hadamard matrix in Sylvester's order. REQUIRES: the size is a
// power of two. Specification, 6.2.
void HadamardTransform(std::span<float> x);

}  // namespace hadal
