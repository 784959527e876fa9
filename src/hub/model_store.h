// The folder that pulled models lie in: ROOT/ORG/NAME, other revisions beside it as NAME@REVISION.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/manifest.h"
#include "hub/repo_name.h"

namespace hadal {

struct StoredModel {
  RepoName repo;
  std::string folder;
  std::string commit, pulled_at;
  int num_files = 0;
  int64_t num_bytes = 0;       // of an unfinished pull those that are there
  bool is_unfinished = false;  // a pull that ended early, or one that is under way
};

class ModelStore {
 public:
  explicit ModelStore(std::string root) : root_(std::move(root)) {}

  const std::string& root() const { return root_; }

  // Where a model lies, or would.
  std::string FolderOf(const RepoName& repo) const;

  // The folder of a model that was pulled completely; empty when there is none.
  std::optional<std::string> Find(const RepoName& repo) const;

  // By name; what is not a pulled model is passed over. Unfinished pulls are in it too.
  std::vector<StoredModel> List() const;

  // Removes a model and what an unfinished pull of it left; from the first step on it is not found
  // any more. Returns the bytes. kNotFound; kResourceExhausted while it is pulled; kIo.
  Result<int64_t> Remove(const RepoName& repo) const;

 private:
  std::string root_;
};

}  // namespace hadal
