// Brings a model from a hub that speaks the protocol of Hugging Face: lists it, downloads what is
// missing, checks every hash, and only then gives the folder its name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/http_client.h"
#include "hub/manifest.h"
#include "hub/repo_name.h"
#include "hub/retry.h"

namespace hadal {

struct PullOptions {
  RepoName repo;
  std::string target;                 // folder; its parents are made
  std::vector<std::string> includes;  // patterns, of which a file meets one; none: all files
  HttpSettings http;
  RetryPolicy retry;
  int num_connections = 4;
};

struct PullReport {
  std::string commit;
  int num_files = 0;
  int64_t num_bytes = 0;
  int64_t downloaded_bytes = 0;
  bool was_up_to_date = false;
};

// Bytes that this pull has downloaded, and those that it has to. On the calling thread.
using PullProgress = std::function<void(int64_t done, int64_t total)>;

// What a revision is now: its commit and all its files.
struct RemoteModel {
  std::string commit;
  std::vector<RemoteFile> files;
};
Result<RemoteModel> ListModel(const RepoName& repo, const std::string& endpoint,
                              const RetryPolicy& retry, HttpClient* client);

// Files of the same model that the target has already are kept, and brought up to the commit;
// anything else in it is kInvalidArgument. kNotFound: no such model, revision, or file that meets a
// pattern; kResourceExhausted: the disk, another pull, or a hub that stays busy; kCorrupt: a hub
// that sends something else than it lists; kIo.
Result<PullReport> PullModel(const PullOptions& options, const PullProgress& progress);

}  // namespace hadal
