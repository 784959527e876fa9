// The logits of all windows of a text in a file, so that a large model needs to run only once. A
// safetensors file with `ids` I32 [tokens], `window_sizes` I32 [windows] and `logits` F32 [tokens,
// vocab_size].
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "evaluate/text_windows.h"
#include "formats/checkpoint.h"
#include "formats/safetensors_writer.h"

namespace hadal {

class StoredLogitsWriter {
 public:
  static Result<StoredLogitsWriter> Create(const std::string& path,
                                           const std::vector<TokenWindow>& windows, int vocab_size);

  // The rows of the next window, [tokens of the window, vocab_size] without gaps.
  Status Add(std::span<const float> rows);
  Status Finish() { return writer_.Finish(); }

 private:
  explicit StoredLogitsWriter(SafetensorsWriter writer) : writer_(std::move(writer)) {}
  SafetensorsWriter writer_;
  int64_t num_bytes_ = 0;
};

class StoredLogits {
 public:
  // kCorrupt when the file is not one of these; kInvalidArgument when its ids are not those of
  // `windows`.
  static Result<StoredLogits> Open(const std::string& path,
                                   const std::vector<TokenWindow>& windows);

  int vocab_size() const { return vocab_size_; }
  // Copies the rows of the next window.
  void ReadNext(std::span<float> rows);

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
  const TensorInfo* logits_ = nullptr;
  int vocab_size_ = 0;
  size_t first_byte_ = 0;
};

}  // namespace hadal
