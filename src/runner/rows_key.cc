#include "runner/rows_key.h"

#include <algorithm>
#include <span>
#include <string>

#include <sys/stat.h>

#include "base/json.h"

namespace hadal {
namespace {

// Tensors that are looked into, spread over all, and bytes of each, from its middle.
constexpr size_t kMaxSamples = 1024;
constexpr size_t kSampleBytes = 64;

class KeyBuilder {
 public:
  void Add(uint64_t value) { key_ = Extend(key_, value); }
  void Add(std::span<const std::byte> bytes) {
    Add(bytes.size());
    Add(HashBytes(bytes));
    Add(HashBytes(bytes, /*seed=*/1));
  }
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  Hash128 key() const { return key_; }

 private:
  Hash128 key_;
};

// Counts up whenever the same model, kernels and options begin to give rows with other bits.
constexpr uint64_t kComputation = 3;

void AddFile(const std::string& path, KeyBuilder* key) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return;
  key->Add(static_cast<uint64_t>(info.st_size));
  key->Add(static_cast<uint64_t>(info.st_mtim.tv_sec));
  key->Add(static_cast<uint64_t>(info.st_mtim.tv_nsec));
}

}  // namespace

Hash128 RowsKey(const Checkpoint& checkpoint, const RunnerOptions& options,
                std::string_view kernels_name, int64_t block_bytes) {
  KeyBuilder key;
  key.Add(kComputation);
  key.Add(DumpJson(checkpoint.config()));
  key.Add(kernels_name);
  key.Add(static_cast<uint64_t>(options.attention_form));
  key.Add(static_cast<uint64_t>(options.cache_format));
  key.Add(static_cast<uint64_t>(options.activations));
  key.Add(static_cast<uint64_t>(block_bytes));
  for (const std::string& path : checkpoint.files()) AddFile(path, &key);
  const std::span<const TensorInfo> tensors = checkpoint.tensors();
  const size_t stride = std::max<size_t>(1, tensors.size() / kMaxSamples);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& tensor = tensors[i];
    key.Add(tensor.name);
    key.Add(static_cast<uint64_t>(tensor.dtype));
    for (const int64_t size : tensor.shape) key.Add(static_cast<uint64_t>(size));
    if (i % stride != 0) continue;
    const size_t size = std::min(kSampleBytes, tensor.bytes.size());
    key.Add(tensor.bytes.subspan((tensor.bytes.size() - size) / 2, size));
  }
  return key.key();
}

}  // namespace hadal
