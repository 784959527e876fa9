#include "hub/model_store.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "hub/staging.h"

namespace hadal {
namespace fs = std::filesystem;

namespace {

// "refs/pr/1" as one name of a file system.
std::string RevisionAsName(std::string revision) {
  for (size_t at = 0; (at = revision.find('/', at)) != revision.npos;) {
    revision.replace(at, 1, "%2F");
  }
  return revision;
}

std::optional<RepoName> RepoOfFolder(const std::string& org, std::string name) {
  for (size_t at = 0; (at = name.find("%2F", at)) != name.npos;) name.replace(at, 3, "/");
  const Result<RepoName> repo = ParseRepoName(org + "/" + name);
  return repo.ok() ? std::optional(*repo) : std::nullopt;
}

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory(error)) folders.push_back(entry->path());
  }
  std::ranges::sort(folders);
  return folders;
}

int64_t BytesIn(const fs::path& folder, int* num_files) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_regular_file(error)) continue;
    bytes += static_cast<int64_t>(entry->file_size(error));
    ++*num_files;
  }
  return bytes;
}

std::optional<StoredModel> Describe(const std::string& org, const fs::path& folder) {
  StoredModel model;
  model.folder = folder.string();
  std::string name = folder.filename().string();
  if (std::string target; IsStagingName(name, &target)) {
    model.is_unfinished = true;
    name = target;
    model.num_bytes = BytesIn(folder / "files", &model.num_files);
    model.num_bytes += BytesIn(folder / "tree", &model.num_files);
  } else {
    const Result<std::optional<Manifest>> manifest = ReadManifest(folder.string());
    if (!manifest.ok() || !manifest->has_value()) return std::nullopt;
    model.commit = (*manifest)->commit;
    model.pulled_at = (*manifest)->pulled_at;
    model.num_files = static_cast<int>((*manifest)->files.size());
    model.num_bytes = (*manifest)->total_bytes();
  }
  const std::optional<RepoName> repo = RepoOfFolder(org, name);
  if (!repo) return std::nullopt;
  model.repo = *repo;
  return model;
}

}  // namespace

std::string ModelStore::FolderOf(const RepoName& repo) const {
  std::string folder = root_ + "/" + repo.org + "/" + repo.name;
  if (repo.revision == kMainRevision) return folder;
  return fmt::format("{}@{}", folder, RevisionAsName(repo.revision));
}

std::optional<std::string> ModelStore::Find(const RepoName& repo) const {
  const std::string folder = FolderOf(repo);
  std::error_code error;
  if (!fs::is_regular_file(folder + "/" + kManifestFile, error)) return std::nullopt;
  return folder;
}

std::vector<StoredModel> ModelStore::List() const {
  std::vector<StoredModel> models;
  for (const fs::path& org : FoldersIn(root_)) {
    for (const fs::path& folder : FoldersIn(org)) {
      std::optional<StoredModel> model = Describe(org.filename().string(), folder);
      if (model) models.push_back(*std::move(model));
    }
  }
  std::ranges::sort(models, {}, [](const StoredModel& model) {
    return std::pair(model.repo.full(), model.is_unfinished);
  });
  return models;
}

Result<int64_t> ModelStore::Remove(const RepoName& repo) const {
  const std::string folder = FolderOf(repo);
  std::error_code error;
  const bool is_there = fs::exists(folder + "/" + kManifestFile, error);
  if (!is_there && !fs::exists(StagingFolder(folder), error)) {
    return Status::NotFound(fmt::format(
        "{}: expected a pulled model, found none in {} (hadal list)", repo.full(), root_));
  }
  ASSIGN_OR_RETURN(Staging staging, Staging::Open(folder));  // whoever pulls it now has it locked
  int num_files = 0;
  int64_t bytes = BytesIn(StagingFolder(folder), &num_files);
  if (is_there) {
    bytes += BytesIn(folder, &num_files);
    // One step takes it out of reach; what follows may be broken off.
    fs::rename(folder, StagingFolder(folder) + "/removed", error);
    if (error) return Status::Io(fmt::format("{}: {}", folder, error.message()));
  }
  RETURN_IF_ERROR(staging.Discard());
  fs::remove(fs::path(folder).parent_path(), error);  // the organisation's, if that was its last
  return bytes;
}

}  // namespace hadal
