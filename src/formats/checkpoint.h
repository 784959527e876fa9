// A checkpoint on disk, opened and completely checked: names, shapes, types and bytes of its
// tensors. Mapped, not copied; tensors point into the mapping and live as long as the Checkpoint.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/status.h"
#include "formats/tensor_info.h"

namespace hadal {

// What the container says about itself, for people.
struct CheckpointNotes {
  std::string container = "safetensors";  // or "gguf"
  std::string form = {};                  // of the layout: "attn_k_b and attn_v_b"; may be empty
  // What stands in for keys that the file leaves out, and what is known to be wrong with it.
  std::vector<std::string> supplied = {}, warnings = {};
};

class Checkpoint {
 public:
  // A folder with config.json and model.safetensors, or with an index and its shards; or one
  // .safetensors file, or the index itself; or a folder with an index and shards but no config.json
  // (then config() is null); or a GGUF file, the first part of one, or a folder with one
  // (gguf_path.h), whose tensors appear under the names of the published layout. Where an index and
  // model.safetensors are both there, the index counts; tensors of its shards that it does not list
  // are left out. Every header is checked here; errors are one line with file, tensor, rule,
  // expected and found. kNotFound when there is nothing at `path`, kCorrupt for a file that breaks
  // its rules or a shard that is missing, kUnsupported for another container.
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  ~Checkpoint();

  // All tensors, sorted by name.
  std::span<const TensorInfo> tensors() const;
  // Null when there is no tensor of that name.
  const TensorInfo* Find(std::string_view name) const;

  const std::vector<std::string>& files() const;  // paths, in the order of their names
  const std::string& path() const;                // as given to Open
  // As MappedFile::DropPages, for bytes of a tensor.
  void DropPages(std::span<const std::byte> part) const;

  // The folder where config.json, tokenizer.json and the rest lie.
  const std::string& folder() const;
  // config.json and generation_config.json; null where the file is absent. Of a GGUF model what its
  // keys say, in the words of config.json.
  const Json& config() const;
  // What names the config in messages: the file it comes from.
  const std::string& config_path() const;
  const Json& generation_config() const;
  const CheckpointNotes& notes() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hadal
