#include "hub/repo_listing.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "base/quote.h"
#include "hub/repo_name.h"

namespace hadal {
namespace {

constexpr size_t kMaxFiles = 100'000;
constexpr int64_t kMaxTotalBytes = int64_t{1} << 50;
constexpr size_t kSha1Digits = 40, kSha256Digits = 64;

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Result<std::string> ReadHash(const Json& object, std::string_view key, size_t digits,
                             std::string_view what) {
  ASSIGN_OR_RETURN(std::string hash, ReadString(object, key, what));
  if (IsHex(hash, digits)) return hash;
  return Status::Corrupt(
      fmt::format("{}: {}: expected {} hex digits, found {}", what, key, digits, Quoted(hash)));
}

Result<RemoteFile> ParseFile(const Json& entry, const std::string& what) {
  RemoteFile file;
  ASSIGN_OR_RETURN(file.path, ReadString(entry, "path", what));
  RETURN_IF_ERROR(CheckRepoPath(file.path).Annotate(what));
  const std::string of_file = fmt::format("{}: {}", what, Quoted(file.path));
  if (!HasValue(entry, "lfs")) {
    ASSIGN_OR_RETURN(file.size, ReadInt(entry, "size", 0, kMaxTotalBytes, of_file));
    ASSIGN_OR_RETURN(file.hash, ReadHash(entry, "oid", kSha1Digits, of_file));
    return file;
  }
  const Json& lfs = entry["lfs"];
  if (!lfs.is_object()) {
    return Status::Corrupt(
        fmt::format("{}: lfs: expected an object, found {}", of_file, lfs.type_name()));
  }
  file.hash_kind = HashKind::kSha256;
  ASSIGN_OR_RETURN(file.size, ReadInt(lfs, "size", 0, kMaxTotalBytes, of_file));
  ASSIGN_OR_RETURN(file.hash, ReadHash(lfs, "oid", kSha256Digits, of_file));
  return file;
}

// "a" and "a/b" cannot both be files. REQUIRES: sorted by path.
const RemoteFile* FindFileInFile(const std::vector<RemoteFile>& files) {
  for (const RemoteFile& file : files) {
    for (size_t slash = file.path.find('/'); slash != file.path.npos;
         slash = file.path.find('/', slash + 1)) {
      const std::string folder = file.path.substr(0, slash);
      const auto found = std::ranges::lower_bound(files, folder, {}, &RemoteFile::path);
      if (found != files.end() && found->path == folder) return &file;
    }
  }
  return nullptr;
}

}  // namespace

Result<std::string> ParseRevision(std::string_view text, std::string_view what) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, what));
  if (!json.is_object()) {
    return Status::Corrupt(
        fmt::format("{}: expected a JSON object, found {}", what, json.type_name()));
  }
  return ReadHash(json, "sha", kSha1Digits, what);
}

Status AppendListing(std::string_view text, std::string_view what, std::vector<RemoteFile>* files) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, what));
  if (!json.is_array()) {
    return Status::Corrupt(
        fmt::format("{}: expected a JSON list of files, found {}", what, json.type_name()));
  }
  for (const Json& entry : json) {
    const std::string place = fmt::format("{}: entry {}", what, files->size());
    if (!entry.is_object()) {
      return Status::Corrupt(
          fmt::format("{}: expected an object, found {}", place, entry.type_name()));
    }
    ASSIGN_OR_RETURN(const std::string type, ReadString(entry, "type", place));
    if (type != "file") continue;  // folders, and what later hubs may add
    if (files->size() >= kMaxFiles) {
      return Status::Unsupported(
          fmt::format("{}: expected at most {} files, found more", what, kMaxFiles));
    }
    ASSIGN_OR_RETURN(RemoteFile file, ParseFile(entry, place));
    files->push_back(std::move(file));
  }
  return Status::Ok();
}

Status CheckListing(std::string_view what, std::vector<RemoteFile>* files) {
  std::ranges::sort(*files, {}, &RemoteFile::path);
  const auto twice = std::ranges::adjacent_find(*files, {}, &RemoteFile::path);
  if (twice != files->end()) {
    return Status::Corrupt(
        fmt::format("{}: {}: expected each file once, found it twice", what, Quoted(twice->path)));
  }
  if (const RemoteFile* inside = FindFileInFile(*files); inside != nullptr) {
    return Status::Corrupt(fmt::format("{}: {}: expected its folder to be one, found a file", what,
                                       Quoted(inside->path)));
  }
  int64_t total = 0;
  for (const RemoteFile& file : *files) {
    total += file.size;
    if (total > kMaxTotalBytes) {
      return Status::Corrupt(
          fmt::format("{}: expected at most {} bytes in all, found more", what, kMaxTotalBytes));
    }
  }
  return Status::Ok();
}

std::string NextPage(std::string_view link_header) {
  const size_t rel = link_header.find("rel=\"next\"");
  if (rel == link_header.npos) return "";
  const size_t end = link_header.rfind('>', rel);
  if (end == link_header.npos) return "";
  const size_t begin = link_header.rfind('<', end);
  if (begin == link_header.npos) return "";
  return std::string(link_header.substr(begin + 1, end - begin - 1));
}

}  // namespace hadal
