#include "engine/prefix_file.h"

#include <algorithm>
#include <bit>
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

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr char kMagic[8] = {'h', 'a', 'd', 'a', 'l', 'R', 'W', 'S'};
// Goes up with the layout of the file, and whenever rows of equal tokens get other bits.
constexpr uint32_t kVersion = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t block_tokens;
  uint64_t rows_key[2];
  uint64_t salt[2];
  uint64_t num_tokens;
  uint64_t num_row_bytes;
  uint64_t content_sum;  // tokens and rows
  uint64_t header_sum;   // all of the above
};
static_assert(sizeof(Header) == 80);
static_assert(sizeof(TokenId) == 4);

template <class T>
std::span<const std::byte> BytesOf(const T& value, size_t size = sizeof(T)) {
  return std::as_bytes(std::span(&value, 1)).first(size);
}

uint64_t HeaderSum(const Header& header) {
  return HashBytes(BytesOf(header, offsetof(Header, header_sum)));
}

uint64_t ContentSum(std::span<const TokenId> tokens, std::span<const std::byte> rows) {
  return HashBytes(rows, HashBytes(std::as_bytes(tokens)));
}

Header MakeHeader(const PrefixFileId& id, std::span<const std::byte> rows) {
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.block_tokens = static_cast<uint32_t>(id.block_tokens);
  header.rows_key[0] = id.rows_key.lo;
  header.rows_key[1] = id.rows_key.hi;
  header.salt[0] = id.salt.lo;
  header.salt[1] = id.salt.hi;
  header.num_tokens = id.prefix.size();
  header.num_row_bytes = rows.size();
  return header;
}

class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { Close(); }

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool Close() { return fd_ < 0 || close(std::exchange(fd_, -1)) == 0; }

  // Both leave errno, 0 for the end of the file.
  bool Write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
    return true;
  }
  bool Read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = read(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done == 0) errno = 0;
      if (done <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
    return true;
  }

 private:
  int fd_;
};

Status SystemError(const std::string& path) {
  if (errno == 0) return Status::Corrupt(fmt::format("{}: it ends early", path));
  return Status::Io(fmt::format("{}: {}", path, std::strerror(errno)));
}

Status CheckHeader(const std::string& path, const Header& found, const Header& expected) {
  if (std::memcmp(found.magic, kMagic, sizeof kMagic) != 0)
    return Status::Unsupported(fmt::format("{}: not a file of the prefix cache", path));
  if (found.header_sum != HeaderSum(found))
    return Status::Corrupt(fmt::format("{}: the checksum of its header is wrong", path));
  if (found.version != kVersion) {
    return Status::Unsupported(
        fmt::format("{}: expected version {}, found {}", path, kVersion, found.version));
  }
  Header same = expected;
  same.content_sum = found.content_sum;
  same.header_sum = found.header_sum;
  if (std::memcmp(&same, &found, sizeof same) != 0) {
    return Status::Unsupported(
        fmt::format("{}: it belongs to another model, another build or another prefix", path));
  }
  return Status::Ok();
}

}  // namespace

int64_t PrefixFileBytes(size_t num_prefix_tokens, int64_t num_row_bytes) {
  return static_cast<int64_t>(sizeof(Header) + num_prefix_tokens * sizeof(TokenId)) + num_row_bytes;
}

Status WritePrefixFile(const std::string& path, const PrefixFileId& id,
                       std::span<const std::byte> rows) {
  Header header = MakeHeader(id, rows);
  header.content_sum = ContentSum(id.prefix, rows);
  header.header_sum = HeaderSum(header);
  const std::string unfinished = fmt::format("{}.{}{}", path, getpid(), kUnfinishedSuffix);
  File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.is_open()) return SystemError(unfinished);
  const bool is_written = file.Write(BytesOf(header)) && file.Write(std::as_bytes(id.prefix)) &&
                          file.Write(rows) && file.Close() &&
                          rename(unfinished.c_str(), path.c_str()) == 0;
  if (is_written) return Status::Ok();
  Status status = SystemError(path);
  unlink(unfinished.c_str());
  return status;
}

Status ReadPrefixFile(const std::string& path, const PrefixFileId& id, std::span<std::byte> rows) {
  File file(path, O_RDONLY);
  if (!file.is_open()) {
    if (errno == ENOENT) return Status::NotFound(fmt::format("{}: no such file", path));
    return SystemError(path);
  }
  Header header = {};
  if (!file.Read(std::as_writable_bytes(std::span(&header, 1)))) return SystemError(path);
  RETURN_IF_ERROR(CheckHeader(path, header, MakeHeader(id, rows)));
  struct stat info = {};
  if (fstat(file.fd(), &info) != 0) return SystemError(path);
  const int64_t expected = PrefixFileBytes(id.prefix.size(), static_cast<int64_t>(rows.size()));
  if (info.st_size != expected) {
    return Status::Corrupt(
        fmt::format("{}: expected {} bytes, found {}", path, expected, info.st_size));
  }
  std::vector<TokenId> tokens(id.prefix.size());
  if (!file.Read(std::as_writable_bytes(std::span(tokens))) || !file.Read(rows))
    return SystemError(path);
  if (header.content_sum != ContentSum(tokens, rows))
    return Status::Corrupt(fmt::format("{}: the checksum of its content is wrong", path));
  if (!std::ranges::equal(tokens, id.prefix))
    return Status::Unsupported(fmt::format("{}: it holds another prefix", path));
  return Status::Ok();
}

}  // namespace hadal
