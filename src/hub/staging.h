// The folder beside a model's own in which it is put together: ".NAME.pull". Files lie there under
// names of ours until all are complete; then they get theirs, and the whole folder its place in one
// step. A process that ends at any moment leaves what the next one continues. One process at a
// time.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "hub/manifest.h"

namespace hadal {

class Staging {
 public:
  // Makes or takes over the folder for `target`. kResourceExhausted when another process has it;
  // kIo.
  static Result<Staging> Open(const std::string& target);

  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&&) = delete;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();  // gives up the lock; what was downloaded stays

  // Where a file grows, and where it waits when it is complete.
  std::string PartPath(const RemoteFile& file) const;
  std::string DonePath(const RemoteFile& file) const;
  bool IsDone(const RemoteFile& file) const;
  int64_t BytesThere(const RemoteFile& file) const;

  // Takes a file that the target has already, if its content is right: a second name for it where
  // the file system can, else a copy. Not IsDone afterwards: it has to be downloaded.
  void Reuse(const RemoteFile& file) const;

  // Bytes that the disk has free.
  Result<int64_t> FreeBytes() const;

  // Puts the files of the manifest at `target`, in place of what was there, and removes the staging
  // folder. kIo, also when one is not IsDone.
  Status Publish(const Manifest& manifest);

  // Removes what was downloaded, and the folder.
  Status Discard();

 private:
  explicit Staging(std::string target);
  Status Lock();
  Status Recover();
  Status Exchange();

  std::string target_, folder_, blobs_, tree_, old_;
  int lock_ = -1;
};

// ".NAME.pull" beside `target`.
std::string StagingFolder(const std::string& target);

// True, with the name of the target in it, for the name of a staging folder.
bool IsStagingName(const std::string& name, std::string* target_name);

}  // namespace hadal
