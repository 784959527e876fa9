#include "sys/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/mapping_registry.h"
#include "sys/memory.h"

namespace hadal {
namespace {

Status SystemError(const std::string& path, int error) {
  std::string message = fmt::format("{}: {}", path, std::strerror(error));
  return error == ENOENT ? Status::NotFound(std::move(message)) : Status::Io(std::move(message));
}

// Closes the descriptor at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Fills [data, data + size) from the start of the file.
Status ReadAll(const std::string& path, int fd, std::byte* data, int64_t size) {
  for (int64_t done = 0; done < size;) {
    const ssize_t got = pread(fd, data + done, static_cast<size_t>(size - done), done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path, errno);
    if (got == 0) {
      return Status::Corrupt(
          fmt::format("{}: size: expected {} bytes, found {} while reading", path, size, done));
    }
    done += got;
  }
  return Status::Ok();
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path, FileAccess access) {
  // Non-blocking, so that a named pipe is refused below instead of waited for.
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return SystemError(path, errno);
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return SystemError(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Status::InvalidArgument(fmt::format("{}: expected a regular file", path));
  }
  MappedFile file;
  file.path_ = path;
  if (info.st_size == 0) return file;  // an empty mapping is an error to mmap, not to us
  if (access == FileAccess::kRead) {
    auto* data = static_cast<std::byte*>(AllocatePages(info.st_size));
    if (data == nullptr) {
      return Status::ResourceExhausted(
          fmt::format("{}: memory: expected {} bytes, the system has too little", path,
                      static_cast<int64_t>(info.st_size)));
    }
    file.data_ = data;
    file.size_ = info.st_size;
    RETURN_IF_ERROR(ReadAll(path, fd.get(), data, info.st_size));
    return file;
  }
  void* address =
      mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return SystemError(path, errno);
  file.data_ = static_cast<const std::byte*>(address);
  file.size_ = info.st_size;
  file.mapping_ = RegisterMapping(address, file.size_, path);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

MappedFile::~MappedFile() {
  if (mapping_ != nullptr) UnregisterMapping(mapping_);
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_));
}

void MappedFile::DropPages(std::span<const std::byte> part) const {
  if (mapping_ == nullptr || part.empty()) return;
  if (part.data() < data_ || part.data() + part.size() > data_ + size_) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<size_t>(part.data() - data_) / page * page;
  const auto end = static_cast<size_t>(part.data() - data_) + part.size();
  madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

Result<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.size() > max_bytes) {
    return Status::InvalidArgument(
        fmt::format("{}: size: expected at most {} bytes, found {}", path, max_bytes, file.size()));
  }
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

}  // namespace hadal
