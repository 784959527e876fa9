// Reads little-endian numbers and strings of a GGUF file from front to back, never past its end.
// Internal to formats/.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/status.h"

namespace hadal {

class GgufReader {
 public:
  // Both are kept by reference.
  GgufReader(std::span<const std::byte> file, const std::string& what) : file_(file), what_(what) {}

  size_t position() const { return position_; }
  uint64_t num_left() const { return file_.size() - position_; }
  const std::string& what() const { return what_; }

  // "path: subject: expected E, found F".
  Status Fault(std::string_view subject, std::string_view expected, std::string_view found) const {
    return Status::Corrupt(
        fmt::format("{}: {}: expected {}, found {}", what_, subject, expected, found));
  }

  // `subject` says in errors what is read.
  template <class T>
  Result<T> Read(std::string_view subject) {
    static_assert(std::endian::native == std::endian::little);
    T value;
    ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, ReadBytes(sizeof(T), subject));
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  Result<std::span<const std::byte>> ReadBytes(uint64_t count, std::string_view subject) {
    if (count > num_left()) {
      return Fault(subject, fmt::format("{} bytes", count),
                   fmt::format("{} bytes before the end of the file", num_left()));
    }
    const auto bytes = file_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return bytes;
  }

  Result<std::string_view> ReadString(std::string_view subject) {
    ASSIGN_OR_RETURN(const auto length, Read<uint64_t>(subject));
    ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, ReadBytes(length, subject));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

 private:
  std::span<const std::byte> file_;
  const std::string& what_;
  size_t position_ = 0;
};

}  // namespace hadal
