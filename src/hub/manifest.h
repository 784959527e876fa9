// What lies in the folder of a pulled model: written before the folder gets its name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/repo_listing.h"
#include "hub/repo_name.h"

namespace hadal {

inline constexpr const char* kManifestFile = ".hadal_pull.json";

struct Manifest {
  RepoName repo;
  std::string commit;
  std::string endpoint;
  std::string pulled_at;               // UTC, ISO 8601
  std::vector<RemoteFile> files = {};  // by path

  int64_t total_bytes() const;
  const RemoteFile* Find(const std::string& path) const;  // null: not in it
};

// Empty when the folder has none; kCorrupt when it is not ours, kIo.
Result<std::optional<Manifest>> ReadManifest(const std::string& folder);

// kIo.
Status WriteManifest(const Manifest& manifest, const std::string& folder);

// Whether every file is there with its size. The content is not read.
bool HasAllFiles(const Manifest& manifest, const std::string& folder);

}  // namespace hadal
