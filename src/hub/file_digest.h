// The hash by which a hub names the content of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace hadal {

// kSha256: of the bytes; large files. kGitSha1: as git names a blob, sha-1 of "blob SIZE\0" and the
// bytes; small files.
enum class HashKind { kSha256, kGitSha1 };

const char* HashKindName(HashKind kind);  // "sha-256", "git hash"

class FileDigest {
 public:
  // Of a file of `size` bytes.
  FileDigest(HashKind kind, int64_t size);
  ~FileDigest();
  FileDigest(const FileDigest&) = delete;
  FileDigest& operator=(const FileDigest&) = delete;

  void Add(std::span<const std::byte> bytes);

  // Lower-case hex; nothing may be added afterwards.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of a file as it is. kIo.
Result<std::string> HashOfFile(const std::string& path, HashKind kind);

}  // namespace hadal
