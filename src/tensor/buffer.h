// Owned memory for activations, caches and repacked weights.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "tensor/matrix.h"

namespace hadal {

class Buffer {
 public:
  Buffer() = default;

  // Zeroed, 64-byte aligned, in huge pages where the system gives them. kResourceExhausted when
  // there is no room.
  static Result<Buffer> Allocate(int64_t bytes);

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  // The start of the buffer as [rows, cols] floats without gaps. REQUIRES: it fits.
  FloatMatrix AsMatrix(int rows, int cols) const;

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace hadal
