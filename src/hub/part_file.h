// A file that grows as it comes, with the hash of what it holds so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "hub/file_digest.h"

namespace hadal {

class PartFile {
 public:
  // Opens or makes it, and reads what it holds into the hash; more than `size` bytes are dropped.
  // kIo.
  static Result<PartFile> Open(const std::string& path, HashKind kind, int64_t size);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  int64_t num_bytes() const { return num_bytes_; }

  // kIo, also when the disk is full.
  Status Append(std::span<const std::byte> bytes);
  Status StartAgain();  // empty

  // The hash of all that it holds. Nothing may be appended afterwards but after StartAgain.
  std::string FinishHash() { return digest_->Finish(); }

  // Puts it on the disk and gives it its name there.
  Status Publish(const std::string& done_path);

 private:
  PartFile() = default;
  Status ReadExisting();

  std::string path_;
  HashKind kind_ = HashKind::kSha256;
  int64_t size_ = 0, num_bytes_ = 0;
  int descriptor_ = -1;
  std::unique_ptr<FileDigest> digest_;
};

}  // namespace hadal
