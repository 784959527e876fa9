// Views of float and index data; they own nothing. Two dimensions are enough: a vector is one row,
// a head dimension is arithmetic with a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/check.h"
#include "tensor/block_layout.h"

namespace hadal {

enum class Device : uint8_t { kCpu };

// Row-major; stride >= cols, both in elements.
template <class T>
struct MatrixView {
  T* data = nullptr;
  int rows = 0, cols = 0;
  int64_t stride = 0;

  // A view that may write is also one that only reads.
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride};
  }

  T* row_data(int r) const {
    HADAL_DCHECK(r >= 0 && r < rows);
    return data + r * stride;
  }
  std::span<T> row(int r) const { return {row_data(r), static_cast<size_t>(cols)}; }
  MatrixView Rows(int first, int count) const {
    HADAL_DCHECK(first >= 0 && count >= 0 && first + count <= rows);
    return {data + first * stride, count, cols, stride};
  }
  MatrixView Cols(int first, int count) const {
    HADAL_DCHECK(first >= 0 && count >= 0 && first + count <= cols);
    return {data + first, rows, count, stride};
  }
};

// Activations are float32 on every device.
using FloatMatrix = MatrixView<float>;
using ConstFloatMatrix = MatrixView<const float>;

// Rows of the latent cache; a row is CacheRowBytes(type, cols) bytes.
struct CacheRows {
  std::byte* data = nullptr;
  CacheType type = CacheType::kF32;
  int rows = 0, cols = 0;

  int64_t row_bytes() const { return CacheRowBytes(type, cols); }
  std::byte* row_data(int r) const {
    HADAL_DCHECK(r >= 0 && r < rows);
    return data + r * row_bytes();
  }
  // REQUIRES: type is kF32.
  const float* floats(int r) const { return reinterpret_cast<const float*>(row_data(r)); }
};

// Positions, slots, ids.
using IndexView = std::span<const int32_t>;

}  // namespace hadal
