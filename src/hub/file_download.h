// One file of a hub onto the disk, whatever the network does: continued where it ended, and right
// or not there.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "hub/http_client.h"
#include "hub/repo_listing.h"
#include "hub/retry.h"

namespace hadal {

struct FileDownload {
  RemoteFile file;
  std::string url;
  std::string part_path;  // grows; what an earlier run left there is continued
  std::string done_path;  // gets the file's name once its hash is right and it is on the disk
};

// `bytes` grows with what is won, and shrinks by what turns out to be wrong.
// kCorrupt when the hub keeps sending something else than it listed; kIo of disk or network; others
// as HttpClient::Get. The part stays unless it is known to be wrong.
Status RunDownload(const FileDownload& download, const RetryPolicy& policy,
                   const std::atomic<bool>* stop, HttpClient* client, std::atomic<int64_t>* bytes);

// The whole of a small reply. `link` may be null. kCorrupt above `max_bytes`.
Result<std::string> FetchText(const std::string& url, int64_t max_bytes, const RetryPolicy& policy,
                              const std::atomic<bool>* stop, HttpClient* client, std::string* link);

}  // namespace hadal
