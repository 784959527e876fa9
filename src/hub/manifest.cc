#include "hub/manifest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/json.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kMaxManifestBytes = int64_t{256} << 20;

// The spelling of a hub's own listing, so that one parser reads both.
Json FileAsJson(const RemoteFile& file) {
  Json json = {{"type", "file"}, {"path", file.path}, {"size", file.size}};
  if (file.hash_kind == HashKind::kSha256) {
    json["lfs"] = {{"oid", file.hash}, {"size", file.size}};
  } else {
    json["oid"] = file.hash;
  }
  return json;
}

}  // namespace

int64_t Manifest::total_bytes() const {
  int64_t sum = 0;
  for (const RemoteFile& file : files) sum += file.size;
  return sum;
}

const RemoteFile* Manifest::Find(const std::string& path) const {
  const auto found = std::ranges::lower_bound(files, path, {}, &RemoteFile::path);
  return found == files.end() || found->path != path ? nullptr : &*found;
}

Result<std::optional<Manifest>> ReadManifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestFile;
  const Result<std::string> text = ReadFile(path, kMaxManifestBytes);
  if (text.status().code() == StatusCode::kNotFound) return std::optional<Manifest>();
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(const Json json, ParseJson(text.value(), path));
  Manifest manifest;
  ASSIGN_OR_RETURN(const std::string name, ReadString(json, "repo", path));
  ASSIGN_OR_RETURN(manifest.repo, ParseRepoName(name));
  ASSIGN_OR_RETURN(manifest.commit, ReadString(json, "commit", path));
  ASSIGN_OR_RETURN(manifest.endpoint, ReadString(json, "endpoint", path));
  ASSIGN_OR_RETURN(manifest.pulled_at, ReadString(json, "pulled_at", path));
  if (!HasValue(json, "files")) {
    return Status::Corrupt(fmt::format("{}: files: expected a list, found none", path));
  }
  RETURN_IF_ERROR(AppendListing(DumpJson(json["files"]), path, &manifest.files));
  RETURN_IF_ERROR(CheckListing(path, &manifest.files));
  return std::optional<Manifest>(std::move(manifest));
}

Status WriteManifest(const Manifest& manifest, const std::string& folder) {
  Json files = Json::array();
  for (const RemoteFile& file : manifest.files) files.push_back(FileAsJson(file));
  const Json json = {{"repo", manifest.repo.full()},
                     {"commit", manifest.commit},
                     {"endpoint", manifest.endpoint},
                     {"pulled_at", manifest.pulled_at},
                     {"files", std::move(files)}};
  const std::string path = folder + "/" + kManifestFile, temporary = path + ".new";
  std::ofstream stream(temporary, std::ios::binary);
  stream << DumpJson(json) << '\n';
  stream.close();
  std::error_code error;
  if (stream.good()) fs::rename(temporary, path, error);
  if (stream.good() && !error) return Status::Ok();
  return Status::Io(fmt::format("{}: expected to write it, the system refused", path));
}

bool HasAllFiles(const Manifest& manifest, const std::string& folder) {
  return std::ranges::all_of(manifest.files, [&folder](const RemoteFile& file) {
    std::error_code error;
    const auto size = fs::file_size(folder + "/" + file.path, error);
    return !error && size == static_cast<uintmax_t>(file.size);
  });
}

}  // namespace hadal
