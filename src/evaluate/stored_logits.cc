#include "evaluate/stored_logits.h"

#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"

namespace hadal {
namespace {

std::vector<int32_t> JoinedIds(const std::vector<TokenWindow>& windows) {
  std::vector<int32_t> ids;
  for (const TokenWindow& window : windows) {
    for (const TokenId id : window) ids.push_back(id.value);
  }
  return ids;
}

std::vector<int32_t> SizesOf(const std::vector<TokenWindow>& windows) {
  std::vector<int32_t> sizes;
  sizes.reserve(windows.size());
  for (const TokenWindow& window : windows) sizes.push_back(static_cast<int32_t>(window.size()));
  return sizes;
}

bool Holds(const TensorInfo* tensor, const std::vector<int32_t>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return tensor->bytes.size() == bytes.size() &&
         std::memcmp(tensor->bytes.data(), bytes.data(), bytes.size()) == 0;
}

}  // namespace

Result<StoredLogitsWriter> StoredLogitsWriter::Create(const std::string& path,
                                                      const std::vector<TokenWindow>& windows,
                                                      int vocab_size) {
  const std::vector<int32_t> ids = JoinedIds(windows), sizes = SizesOf(windows);
  const auto num_tokens = static_cast<int64_t>(ids.size());
  ASSIGN_OR_RETURN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(
          path, {{"logits", DType::kF32, {num_tokens, vocab_size}},
                 {"ids", DType::kI32, {num_tokens}},
                 {"window_sizes", DType::kI32, {static_cast<int64_t>(sizes.size())}}}));
  RETURN_IF_ERROR(writer.Write(1, 0, std::as_bytes(std::span(ids))));
  RETURN_IF_ERROR(writer.Write(2, 0, std::as_bytes(std::span(sizes))));
  return StoredLogitsWriter(std::move(writer));
}

Status StoredLogitsWriter::Add(std::span<const float> rows) {
  const std::span<const std::byte> bytes = std::as_bytes(rows);
  RETURN_IF_ERROR(writer_.Write(0, num_bytes_, bytes));
  num_bytes_ += static_cast<int64_t>(bytes.size());
  return Status::Ok();
}

Result<StoredLogits> StoredLogits::Open(const std::string& path,
                                        const std::vector<TokenWindow>& windows) {
  StoredLogits stored;
  ASSIGN_OR_RETURN(stored.checkpoint_, Checkpoint::Open(path));
  stored.logits_ = stored.checkpoint_->Find("logits");
  const TensorInfo* ids = stored.checkpoint_->Find("ids");
  const TensorInfo* sizes = stored.checkpoint_->Find("window_sizes");
  const auto num_tokens = static_cast<int64_t>(JoinedIds(windows).size());
  if (stored.logits_ == nullptr || ids == nullptr || sizes == nullptr ||
      stored.logits_->dtype != DType::kF32 || stored.logits_->shape.size() != 2 ||
      stored.logits_->shape[1] < 1 || stored.logits_->shape[1] > INT32_MAX) {
    return Status::Corrupt(fmt::format(
        "{}: expected the stored logits of a text (F32 logits, ids and window_sizes), found others",
        path));
  }
  if (stored.logits_->shape[0] != num_tokens || !Holds(ids, JoinedIds(windows)) ||
      !Holds(sizes, SizesOf(windows))) {
    return Status::InvalidArgument(fmt::format(
        "{}: expected the logits of the same {} tokens in the same windows, found others", path,
        num_tokens));
  }
  stored.vocab_size_ = static_cast<int>(stored.logits_->shape[1]);
  return stored;
}

void StoredLogits::ReadNext(std::span<float> rows) {
  HADAL_CHECK(first_byte_ + rows.size_bytes() <= logits_->bytes.size());
  std::memcpy(rows.data(), logits_->bytes.data() + first_byte_, rows.size_bytes());
  first_byte_ += rows.size_bytes();
}

}  // namespace hadal
