// A checkpoint on disk, opened and completely checked: names, shapes, types and bytes of its
// tensors. Mapped, not copied; tensors point into the mapping and live as long as the Checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "tensor/scalar.h"

namespace hadal {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // little-endian, row-major, no particular alignment
  int file_idx = 0;                  // into Checkpoint::files()

  int64_t num_elements() const;
};

// "[4096, 256]".
std::string ShapeText(std::span<const int64_t> shape);

class Checkpoint {
 public:
  // A folder with config.json and model.safetensors, or with an index and its shards; or one
  // .safetensors file; or a folder with an index and shards but no config.json (then config() is
  // null). Every header is checked here; errors are one line with file, tensor, rule, expected and
  // found.
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  ~Checkpoint();

  // All tensors, by name.
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const;
  // Null when there is no tensor of that name.
  const TensorInfo* Find(std::string_view name) const;

  const std::vector<std::string>& files() const;  // paths, in the order of their names
  const std::string& path() const;                // as given to Open
  // The folder where config.json, tokenizer.json and the rest lie.
  const std::string& folder() const;
  // config.json and generation_config.json; null where the file is absent.
  const Json& config() const;
  const Json& generation_config() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hadal
