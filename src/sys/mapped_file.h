// The bytes of a file, mapped read-only or read into memory. They live as long as the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace hadal {

struct Mapping;

// Mapped files cost no memory of their own and no time before they are used; but if one is cut
// short while it is in use, or its network disk goes away, the process must end (see
// mapping_registry.h). A file that was read is safe from that.
enum class FileAccess { kMap, kRead };

class MappedFile {
 public:
  // kNotFound, or kIo with the system's reason; anything but a regular file is kInvalidArgument;
  // kResourceExhausted when there is no memory to read it into.
  static Result<MappedFile> Open(const std::string& path, FileAccess access = FileAccess::kMap);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  int64_t size() const { return size_; }

  // Tells the system that `part` of bytes() will not be read soon: its pages no longer count as
  // this process's memory, and come back from the file when they are. Nothing happens to a file
  // that was read, or to bytes of others.
  void DropPages(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
  Mapping* mapping_ = nullptr;  // null for a file that was read
};

// The whole of a small file. kInvalidArgument when it is larger than `max_bytes`; else as
// MappedFile::Open.
Result<std::string> ReadFile(const std::string& path, int64_t max_bytes);

}  // namespace hadal
