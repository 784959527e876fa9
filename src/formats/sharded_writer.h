// Writes the weights of a model folder: one safetensors file, or shards with their index where they
// are larger.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/safetensors_writer.h"

namespace hadal {

class ShardedWriter {
 public:
  // Plans the files: tensors in the order of `specs`, as many in each as fit into shard_bytes, at
  // least one. Nothing is written yet. Errors as of SafetensorsWriter::Create.
  static Result<ShardedWriter> Create(const std::string& folder, std::vector<SafetensorsSpec> specs,
                                      int64_t shard_bytes = kDefaultShardBytes);

  int num_shards() const { return static_cast<int>(shards_.size()); }
  int64_t total_bytes() const { return total_bytes_; }

  // As SafetensorsWriter::Write. A shard's file is opened with its first piece and gets its name
  // with its last one, so tensors should be written in the order of the shards.
  Status Write(int spec_idx, int64_t first_byte, std::span<const std::byte> bytes);

  // Writes the index of several shards. kInvalidArgument when a tensor has not got all of its
  // bytes.
  Status Finish();

 private:
  struct Shard {
    ShardPlan plan;
    int64_t num_written = 0;
    std::optional<SafetensorsWriter> writer;  // while it is being written
  };

  ShardedWriter() = default;
  Status Open(Shard* shard);

  std::string folder_;
  std::vector<SafetensorsSpec> specs_;
  std::vector<Shard> shards_;
  std::vector<int> shard_of_spec_;
  int64_t total_bytes_ = 0;
};

// Writes a small file as a whole under a name of its own first, so that it is there completely or
// not at all. kIo with the system's reason.
Status WriteWholeFile(const std::string& path, std::string_view content);

}  // namespace hadal
