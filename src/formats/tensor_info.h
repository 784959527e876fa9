// What a file says about one tensor, checked, and where its bytes lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/scalar.h"

namespace hadal {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;        // the product of the sizes fits into an int64_t
  std::span<const std::byte> bytes;  // little-endian, row-major, no particular alignment
  int file_idx = 0;                  // into Checkpoint::files()

  int64_t num_elements() const;  // 1 for a shape without dimensions
};

// "[4096, 256]"; of more than eight sizes only the first eight are shown.
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace hadal
