// What a hub calls its models, files and revisions. All of it is hostile until it has passed here:
// names become paths on this machine and parts of addresses.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace hadal {

inline constexpr const char* kMainRevision = "main";

struct RepoName {
  std::string org, name;
  std::string revision = kMainRevision;  // a branch, a tag or a commit

  std::string id() const { return org + "/" + name; }  // "org/name"
  // "org/name", with "@revision" where it is not main.
  std::string full() const;
};

// "ORG/NAME" or "ORG/NAME@REVISION". Letters, digits and ".-_", in revisions also "/" and "+"; no
// part begins with "." or "-". kInvalidArgument.
Result<RepoName> ParseRepoName(std::string_view text);

// Whether a path inside a repository may be written below a folder: relative, parts between single
// slashes, none of them "." or "..", no control characters and no backslash, valid UTF-8, and not
// so long that a file system refuses it. kCorrupt, with the rule.
Status CheckRepoPath(std::string_view path);

// For an address: everything but letters, digits, "-._~" and "/" as %NN.
std::string PercentEncoded(std::string_view text);

// Shell's pattern: "*" (also across "/"), "?" and "[...]".
bool MatchesGlob(const std::string& pattern, const std::string& path);

}  // namespace hadal
