// A file mapped read-only. The mapping lives as long as the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace hadal {

class MappedFile {
 public:
  // kNotFound, or kIo with the system's reason; anything but a regular file is kInvalidArgument.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  int64_t size() const { return size_; }

 private:
  MappedFile() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

// The whole of a small file. kInvalidArgument when it is larger than `max_bytes`; else as
// MappedFile::Open.
Result<std::string> ReadFile(const std::string& path, int64_t max_bytes);

}  // namespace hadal
