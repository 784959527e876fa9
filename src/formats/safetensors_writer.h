// Writes a safetensors file piece by piece: shapes first, then bytes in any order, so that a result
// larger than memory can be written while it is computed. Tensors of whole cache lines (64 bytes)
// begin on one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/safetensors_layout.h"

namespace hadal {

class SafetensorsWriter {
 public:
  // Creates "<path>.partial" with the header; Finish gives it its name. kInvalidArgument for a
  // repeated name, a negative size or a size beyond 2^63 bits; kIo with the system's reason.
  static Result<SafetensorsWriter> Create(const std::string& path,
                                          const std::vector<SafetensorsSpec>& specs,
                                          const std::map<std::string, std::string>& metadata = {});

  SafetensorsWriter(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();  // removes the file unless Finish was called

  // Bytes [first_byte, first_byte + bytes.size()) of tensor `spec_idx` (into `specs`). Each byte of
  // a tensor is written once. REQUIRES: the range lies in the tensor.
  Status Write(int spec_idx, int64_t first_byte, std::span<const std::byte> bytes);

  // Renames the file to its path. kInvalidArgument when a tensor has not got all of its bytes.
  Status Finish();

 private:
  struct Slot {
    std::string name;
    int64_t file_offset = 0;
    int64_t num_bytes = 0;
    int64_t num_written = 0;
  };

  SafetensorsWriter() = default;
  Status WriteAt(int64_t offset, std::span<const std::byte> bytes);

  std::string path_;
  int fd_ = -1;
  std::vector<Slot> slots_;  // in the order of `specs`
};

// A whole file at once.
struct SafetensorsTensor {
  SafetensorsSpec spec;
  std::span<const std::byte> bytes;
};
Status WriteSafetensors(const std::string& path, const std::vector<SafetensorsTensor>& tensors,
                        const std::map<std::string, std::string>& metadata = {});

}  // namespace hadal
