#include "hub/part_file.h"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hadal {
namespace {

constexpr size_t kReadBytes = 1 << 20;

Status SystemFault(const std::string& path, const char* what) {
  return Status::Io(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

}  // namespace

Result<PartFile> PartFile::Open(const std::string& path, HashKind kind, int64_t size) {
  PartFile part;
  part.path_ = path;
  part.kind_ = kind;
  part.size_ = size;
  part.digest_ = std::make_unique<FileDigest>(kind, size);
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0 && info.st_nlink > 1) {
    unlink(path.c_str());  // a second name of a file that is in use: not to be written into
  }
  part.descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (part.descriptor_ < 0) return SystemFault(path, "open");
  RETURN_IF_ERROR(part.ReadExisting());
  return part;
}

Status PartFile::ReadExisting() {
  struct stat info = {};
  if (fstat(descriptor_, &info) != 0) return SystemFault(path_, "stat");
  if (info.st_size > size_) return StartAgain();
  std::vector<std::byte> buffer(kReadBytes);
  while (num_bytes_ < info.st_size) {
    const ssize_t count = pread(descriptor_, buffer.data(), buffer.size(), num_bytes_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemFault(path_, "read");
    if (count == 0) break;
    digest_->Add(std::span(buffer).first(static_cast<size_t>(count)));
    num_bytes_ += count;
  }
  return Status::Ok();
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      kind_(other.kind_),
      size_(other.size_),
      num_bytes_(other.num_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      digest_(std::move(other.digest_)) {}

PartFile::~PartFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status PartFile::Append(std::span<const std::byte> bytes) {
  digest_->Add(bytes);
  while (!bytes.empty()) {
    const ssize_t count = pwrite(descriptor_, bytes.data(), bytes.size(), num_bytes_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemFault(path_, "write");
    num_bytes_ += count;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Status::Ok();
}

Status PartFile::StartAgain() {
  if (ftruncate(descriptor_, 0) != 0) return SystemFault(path_, "truncate");
  num_bytes_ = 0;
  digest_ = std::make_unique<FileDigest>(kind_, size_);
  return Status::Ok();
}

Status PartFile::Publish(const std::string& done_path) {
  if (fsync(descriptor_) != 0) return SystemFault(path_, "sync");
  if (rename(path_.c_str(), done_path.c_str()) != 0) return SystemFault(path_, "rename");
  return Status::Ok();
}

}  // namespace hadal
