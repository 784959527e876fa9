#include "hub/staging.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "hub/file_digest.h"

namespace hadal {
namespace fs = std::filesystem;

namespace {

constexpr const char* kSuffix = ".pull";

Status SystemFault(const std::string& path, const std::error_code& error) {
  return Status::Io(fmt::format("{}: {}", path, error.message()));
}
Status SystemFault(const std::string& path) {
  return Status::Io(fmt::format("{}: {}", path, std::strerror(errno)));
}

// The names of files reach the disk. Where a file system cannot do that, nothing is lost but that.
void SyncFolder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

std::string StagingFolder(const std::string& target) {
  const fs::path path(target);
  return (path.parent_path() / fmt::format(".{}{}", path.filename().string(), kSuffix)).string();
}

bool IsStagingName(const std::string& name, std::string* target_name) {
  const size_t around = 1 + std::strlen(kSuffix);
  if (name.size() <= around || !name.starts_with('.') || !name.ends_with(kSuffix)) return false;
  *target_name = name.substr(1, name.size() - around);
  return true;
}

Staging::Staging(std::string target)
    : target_(std::move(target)),
      folder_(StagingFolder(target_)),
      blobs_(folder_ + "/files"),
      tree_(folder_ + "/tree"),
      old_(folder_ + "/old") {}

Staging::Staging(Staging&& other) noexcept
    : target_(std::move(other.target_)),
      folder_(std::move(other.folder_)),
      blobs_(std::move(other.blobs_)),
      tree_(std::move(other.tree_)),
      old_(std::move(other.old_)),
      lock_(std::exchange(other.lock_, -1)) {}

Staging::~Staging() {
  if (lock_ >= 0) close(lock_);
}

Result<Staging> Staging::Open(const std::string& target) {
  Staging staging(target);
  RETURN_IF_ERROR(staging.Lock());
  RETURN_IF_ERROR(staging.Recover());
  return staging;
}

// The other process may remove the folder, with the lock in it, between our opening and our
// locking: then what we hold is no longer there, and we begin again.
Status Staging::Lock() {
  const std::string path = folder_ + "/lock";
  while (true) {
    std::error_code error;
    fs::create_directories(blobs_, error);
    if (error) return SystemFault(blobs_, error);
    lock_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (lock_ < 0 && errno == ENOENT) continue;
    if (lock_ < 0) return SystemFault(path);
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return SystemFault(path);
      return Status::ResourceExhausted(fmt::format(
          "{}: expected to be the only one that pulls it, found another process at work", target_));
    }
    struct stat held = {}, there = {};
    if (fstat(lock_, &held) == 0 && stat(path.c_str(), &there) == 0 &&
        held.st_ino == there.st_ino && held.st_dev == there.st_dev) {
      fs::create_directories(blobs_, error);
      return error ? SystemFault(blobs_, error) : Status::Ok();
    }
    close(std::exchange(lock_, -1));
  }
}

// A process ended while it gave files their names, or between taking the old folder away and
// putting the new one there.
Status Staging::Recover() {
  std::error_code error;
  if (fs::exists(old_, error)) {
    if (!fs::exists(target_, error)) {
      fs::rename(old_, target_, error);
      if (error) return SystemFault(old_, error);
    }
    fs::remove_all(old_, error);
  }
  if (!fs::exists(tree_, error)) return Status::Ok();
  const Result<std::optional<Manifest>> manifest = ReadManifest(tree_);
  if (manifest.ok() && manifest->has_value()) {
    for (const RemoteFile& file : (*manifest)->files) {
      // Those that are there. As parts, whose hashes are checked again: after an exchange they are
      // the old model's, in which somebody may have written.
      fs::rename(tree_ + "/" + file.path, PartPath(file), error);
    }
  }
  fs::remove_all(tree_, error);
  return error ? SystemFault(tree_, error) : Status::Ok();
}

// Of content and path: two equal files are two.
std::string Staging::DonePath(const RemoteFile& file) const {
  constexpr size_t kPathDigits = 16;
  FileDigest digest(HashKind::kSha256, 0);
  digest.Add(std::as_bytes(std::span(file.path)));
  return blobs_ + "/" + file.hash + "-" + digest.Finish().substr(0, kPathDigits);
}

std::string Staging::PartPath(const RemoteFile& file) const { return DonePath(file) + ".part"; }

bool Staging::IsDone(const RemoteFile& file) const {
  std::error_code error;
  return fs::file_size(DonePath(file), error) == static_cast<uintmax_t>(file.size) && !error;
}

int64_t Staging::BytesThere(const RemoteFile& file) const {
  if (IsDone(file)) return file.size;
  std::error_code error;
  const uintmax_t size = fs::file_size(PartPath(file), error);
  return error ? 0 : std::min(static_cast<int64_t>(size), file.size);
}

void Staging::Reuse(const RemoteFile& file) const {
  const std::string from = target_ + "/" + file.path, copy = DonePath(file) + ".copy";
  std::error_code error;
  if (fs::file_size(from, error) != static_cast<uintmax_t>(file.size) || error) return;
  const Result<std::string> hash = HashOfFile(from, file.hash_kind);
  if (!hash.ok() || *hash != file.hash) return;
  fs::create_hard_link(from, DonePath(file), error);
  if (!error) return;
  fs::copy_file(from, copy, fs::copy_options::overwrite_existing, error);
  if (!error) fs::rename(copy, DonePath(file), error);
}

Result<int64_t> Staging::FreeBytes() const {
  struct statvfs info = {};
  if (statvfs(folder_.c_str(), &info) != 0) return SystemFault(folder_);
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

Status Staging::Publish(const Manifest& manifest) {
  std::error_code error;
  fs::create_directories(tree_, error);
  if (error) return SystemFault(tree_, error);
  RETURN_IF_ERROR(WriteManifest(manifest, tree_));
  for (const RemoteFile& file : manifest.files) {
    if (!IsDone(file)) {  // somebody else was here
      return Status::Io(fmt::format("{}: expected it complete, found it gone", DonePath(file)));
    }
    const std::string path = tree_ + "/" + file.path;
    fs::create_directories(fs::path(path).parent_path(), error);
    if (error) return SystemFault(path, error);
    fs::rename(DonePath(file), path, error);
    if (error) return SystemFault(path, error);
  }
  SyncFolder(tree_);
  RETURN_IF_ERROR(Exchange());
  SyncFolder(fs::path(target_).parent_path().string());
  (void)Discard();  // the model is there; what stays is removed by the next pull
  return Status::Ok();
}

Status Staging::Exchange() {
  if (rename(tree_.c_str(), target_.c_str()) == 0) return Status::Ok();  // nothing, or empty
  if (renameat2(AT_FDCWD, tree_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
    return Status::Ok();
  }
  // A file system that cannot exchange two folders: Recover repairs what ends in between.
  if (rename(target_.c_str(), old_.c_str()) != 0) return SystemFault(target_);
  return rename(tree_.c_str(), target_.c_str()) == 0 ? Status::Ok() : SystemFault(target_);
}

Status Staging::Discard() {
  std::error_code error;
  fs::remove_all(folder_, error);
  return error ? SystemFault(folder_, error) : Status::Ok();
}

}  // namespace hadal
