#include "hub/repo_name.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include "base/quote.h"
#include "base/utf8.h"

namespace hadal {
namespace {

constexpr size_t kMaxNameBytes = 96, kMaxRevisionBytes = 128;
constexpr size_t kMaxPartBytes = 240, kMaxPathBytes = 1024;  // room for a suffix of ours

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

// Each part between slashes is plain and does not begin like a flag or a hidden file.
bool IsPlainName(std::string_view text, std::string_view also) {
  char before = '/';
  for (const char c : text) {
    if (!IsPlain(c) && also.find(c) == std::string_view::npos) return false;
    if (before == '/' && (c == '.' || c == '-' || c == '/')) return false;
    before = c;
  }
  return !text.empty() && before != '/';
}

Status BadPath(std::string_view path, const char* rule) {
  return Status::Corrupt(fmt::format("file name {}: {}", Quoted(path), rule));
}

}  // namespace

std::string RepoName::full() const {
  return revision == kMainRevision ? id() : id() + "@" + revision;
}

Result<RepoName> ParseRepoName(std::string_view text) {
  RepoName repo;
  const size_t at = text.find('@');
  const std::string_view id = text.substr(0, at);
  const size_t slash = id.find('/');
  if (slash != std::string_view::npos) {
    repo.org = id.substr(0, slash);
    repo.name = id.substr(slash + 1);
  }
  if (at != std::string_view::npos) repo.revision = text.substr(at + 1);
  if (!IsPlainName(repo.org, "") || !IsPlainName(repo.name, "") ||
      repo.org.size() > kMaxNameBytes || repo.name.size() > kMaxNameBytes) {
    return Status::InvalidArgument(fmt::format(
        "model name: expected ORG/NAME[@REVISION] of letters, digits and \".-_\", found {}",
        Quoted(text)));
  }
  if (!IsPlainName(repo.revision, "/+") || repo.revision.size() > kMaxRevisionBytes ||
      repo.revision.find("..") != std::string::npos) {
    return Status::InvalidArgument(
        fmt::format("model name {}: revision: expected a branch, a tag or a commit, found {}",
                    repo.id(), Quoted(repo.revision)));
  }
  return repo;
}

Status CheckRepoPath(std::string_view path) {
  if (path.empty()) return BadPath(path, "expected a name, found none");
  if (path.size() > kMaxPathBytes) return BadPath(path, "expected at most 1024 bytes, found more");
  if (!IsValidUtf8(path)) return BadPath(path, "expected valid UTF-8");
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '\\') {
      return BadPath(path, "expected no control character and no backslash");
    }
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return BadPath(path, "expected a path below the model's folder");
    }
    if (part.size() > kMaxPartBytes) return BadPath(path, "expected parts of at most 240 bytes");
    begin = end + 1;
  }
  return Status::Ok();
}

std::string PercentEncoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsPlain(c) || c == '~' || c == '/') {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

bool MatchesGlob(const std::string& pattern, const std::string& path) {
  return fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
}

}  // namespace hadal
