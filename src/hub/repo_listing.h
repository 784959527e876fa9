// What a hub says lies in a repository: its JSON, checked completely. Whatever it says, the names
// that come out stay below one folder and the sizes add up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/file_digest.h"

namespace hadal {

struct RemoteFile {
  std::string path;
  int64_t size = 0;
  HashKind hash_kind = HashKind::kGitSha1;
  std::string hash;  // lower-case hex
};

// The commit that a revision stands for now: 40 hex digits. `text` is the answer of
// /api/models/ORG/NAME/revision/REVISION. kCorrupt.
Result<std::string> ParseRevision(std::string_view text, std::string_view what);

// Adds the files of one page of /api/models/ORG/NAME/tree/COMMIT?recursive=true. Large files have
// the sha-256 of their content, others git's hash. kCorrupt; kUnsupported above 100,000 files.
Status AppendListing(std::string_view text, std::string_view what, std::vector<RemoteFile>* files);

// Sorts them by path. kCorrupt when two have the same one, when one is a folder of another, or when
// the sizes of all do not add up to something sensible.
Status CheckListing(std::string_view what, std::vector<RemoteFile>* files);

// The address of the next page in a Link header: <address>; rel="next". Empty when there is none.
std::string NextPage(std::string_view link_header);

}  // namespace hadal
