#include "tensor/buffer.h"

#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "sys/memory.h"

namespace hadal {

Result<Buffer> Buffer::Allocate(int64_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  buffer.data_ = static_cast<std::byte*>(AllocatePages(bytes));
  if (buffer.data_ == nullptr) {
    return Status::ResourceExhausted(
        fmt::format("memory: expected {} bytes, the system has too little", bytes));
  }
  buffer.bytes_ = bytes;
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) FreePages(data_, bytes_);
}

FloatMatrix Buffer::AsMatrix(int rows, int cols) const {
  HADAL_CHECK(static_cast<int64_t>(rows) * cols * static_cast<int64_t>(sizeof(float)) <= bytes_);
  return {reinterpret_cast<float*>(data_), rows, cols, cols};
}

}  // namespace hadal
