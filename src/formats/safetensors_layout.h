// Where the tensors of a safetensors file that is to be written lie, and how a model's tensors are
// spread over files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/scalar.h"

namespace hadal {

struct SafetensorsSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // sizes >= 0
};

// Bytes of a tensor. kInvalidArgument, naming `path`, for a negative size, a size beyond 2^63 bits,
// or bits that are no whole bytes.
Result<int64_t> SpecBytes(const SafetensorsSpec& spec, const std::string& path);

struct SafetensorsLayout {
  std::string header;  // the first bytes of the file: length, JSON, padding
  struct Slot {
    int64_t file_offset = 0, num_bytes = 0;
  };
  std::vector<Slot> slots;  // in the order of the specs
  int64_t file_bytes = 0;
};

// Tensors of whole cache lines (64 bytes) come first and begin on one; the others are aligned to
// their type. kInvalidArgument for a repeated name, a size as in SpecBytes, or more than 2^63
// bytes; `path` names the file in errors.
Result<SafetensorsLayout> LayOutSafetensors(
    const std::string& path, const std::vector<SafetensorsSpec>& specs,
    const std::map<std::string, std::string>& metadata = {});

inline constexpr int64_t kDefaultShardBytes = 4'000'000'000;

// Tensors that follow each other and share a file.
struct ShardPlan {
  std::string name;  // "model.safetensors", or "model-00001-of-00012.safetensors"
  int first_spec = 0, num_specs = 0;
  int64_t num_bytes = 0;  // of the tensors
};

// As many tensors in each file as fit into shard_bytes, at least one. Errors as of SpecBytes.
// REQUIRES: shard_bytes > 0.
Result<std::vector<ShardPlan>> PlanShards(const std::string& folder,
                                          const std::vector<SafetensorsSpec>& specs,
                                          int64_t shard_bytes);

// The text of model.safetensors.index.json.
std::string ShardIndexText(const std::vector<SafetensorsSpec>& specs,
                           const std::vector<ShardPlan>& shards);

}  // namespace hadal
