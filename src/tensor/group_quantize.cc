#include "tensor/group_quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

template <class T>
T LargestMagnitude(std::span<const T> values) {
  T largest = 0;
  for (const T value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

int RoundToCode(double value, double scale, int low, int high) {
  if (scale == 0.0) return 0;
  return std::clamp(static_cast<int>(std::nearbyint(value / scale)), low, high);
}

// The smallest power of two that is not below `value`, from its bits. REQUIRES: value is positive
// and normal.
float PowerOfTwoAbove(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFF) != 0) bits += 0x800000;
  return std::bit_cast<float>(bits & 0x7F800000);
}

}  // namespace

QuantizedGroup QuantizeAsymmetricInt4(std::span<const double> values) {
  QuantizedGroup group;
  double low = 0.0, high = 0.0;
  for (const double value : values) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  group.scale = (high - low) / 15.0;
  group.zero_point = RoundToCode(-low, group.scale, 0, 15);
  for (const double value : values) {
    const int code = RoundToCode(value, group.scale, -group.zero_point, 15 - group.zero_point);
    group.codes.push_back(code + group.zero_point);
  }
  return group;
}

QuantizedGroup QuantizeSymmetricInt4(std::span<const double> values) {
  QuantizedGroup group;
  group.scale = LargestMagnitude(values) / 7.0;
  for (const double value : values) group.codes.push_back(RoundToCode(value, group.scale, -7, 7));
  return group;
}

QuantizedActivations QuantizeActivationsE4m3(std::span<const float> values, ActivationScale kind) {
  QuantizedActivations result;
  result.scale = std::max(LargestMagnitude(values), 1e-4f) / 448.0f;
  if (kind == ActivationScale::kPowerOfTwo) result.scale = PowerOfTwoAbove(result.scale);
  for (const float value : values) result.codes.push_back(FloatToE4m3(value / result.scale));
  return result;
}

void HadamardTransform(std::span<float> x) {
  HADAL_CHECK(std::has_single_bit(x.size()));
  for (size_t half = 1; half < x.size(); half *= 2) {
    for (size_t block = 0; block < x.size(); block += 2 * half) {
      for (size_t i = block; i < block + half; ++i) {
        const float sum = x[i] + x[i + half], difference = x[i] - x[i + half];
        x[i] = sum;
        x[i + half] = difference;
      }
    }
  }
  const float factor = 1.0f / std::sqrt(static_cast<float>(x.size()));
  for (float& value : x) value *= factor;
}

}  // namespace hadal
