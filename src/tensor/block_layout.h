// The number formats of weights and their bytes. Plain; includes only <cstdint>, because kernels
// include it.
#pragma once

#include <cstdint>

namespace hadal {

// What the numbers of a matrix mean. Decided by the file.
enum class QuantFormat : uint8_t {
  kF32,
  kBF16,
  kF16,
  kF8Block128,  // E4M3FN codes; one float scale per 128 x 128 block, which multiplies
                // (specification, 7.3)
};
inline constexpr int kNumQuantFormats = 4;

inline constexpr int kF8BlockSize = 128;

// Bytes of one element.
constexpr int64_t ElementBytes(QuantFormat format) {
  switch (format) {
    case QuantFormat::kF32:
      return 4;
    case QuantFormat::kBF16:
    case QuantFormat::kF16:
      return 2;
    case QuantFormat::kF8Block128:
      return 1;
  }
  return 0;
}

// In which order the bytes lie. Decided by the backend at load.
enum class WeightLayout : uint8_t {
  kRows,  // row-major as in the file, any alignment
};

}  // namespace hadal
