#include "hub/pull.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/quote.h"
#include "hub/file_download.h"
#include "hub/staging.h"
#include "hub/web_address.h"

namespace hadal {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kMaxReplyBytes = int64_t{64} << 20;
constexpr int kMaxPages = 10'000;
constexpr std::chrono::milliseconds kProgressInterval{100};

std::string ApiAddress(const std::string& endpoint, const RepoName& repo, const char* what) {
  return fmt::format("{}/api/models/{}/{}/", endpoint, PercentEncoded(repo.id()), what);
}

// A revision is one part of the address: its slashes are encoded too.
std::string EncodedRevision(const std::string& revision) {
  std::string encoded = PercentEncoded(revision);
  for (size_t at = 0; (at = encoded.find('/', at)) != encoded.npos;) encoded.replace(at, 1, "%2F");
  return encoded;
}

std::string UtcNow() {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

// Those that meet a pattern, and those of the target that are as they were.
Result<std::vector<RemoteFile>> Wanted(const PullOptions& options, const RemoteModel& model,
                                       const std::optional<Manifest>& old) {
  std::vector<RemoteFile> wanted;
  bool has_match = false;
  for (const RemoteFile& file : model.files) {
    if (file.path == kManifestFile) continue;  // the name is ours
    const bool matches = options.includes.empty() ||
                         std::ranges::any_of(options.includes, [&file](const std::string& pattern) {
                           return MatchesGlob(pattern, file.path);
                         });
    has_match |= matches;
    const RemoteFile* before = old ? old->Find(file.path) : nullptr;
    if (matches || (before != nullptr && before->hash == file.hash)) wanted.push_back(file);
  }
  if (has_match) return wanted;
  return Status::NotFound(
      fmt::format("{}: expected files{}, found none among {}", options.repo.full(),
                  options.includes.empty() ? "" : " that meet --include", model.files.size()));
}

// What lies at the target before. kInvalidArgument unless it is this model, nothing, or empty.
Result<std::optional<Manifest>> ReadTarget(const PullOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(options.target, error);
  if (!fs::exists(status)) return std::optional<Manifest>();
  if (!fs::is_directory(status)) {
    return Status::InvalidArgument(
        fmt::format("{}: expected a folder, found a file", options.target));
  }
  ASSIGN_OR_RETURN(std::optional<Manifest> manifest, ReadManifest(options.target));
  if (!manifest && !fs::is_empty(options.target, error)) {
    return Status::InvalidArgument(fmt::format(
        "{}: expected a pulled model or an empty folder, found other files", options.target));
  }
  if (manifest && manifest->repo.full() != options.repo.full()) {
    return Status::InvalidArgument(fmt::format("{}: expected {}, found {}", options.target,
                                               options.repo.full(), manifest->repo.full()));
  }
  return manifest;
}

bool IsUpToDate(const Manifest& old, const std::vector<RemoteFile>& wanted,
                const std::string& folder) {
  return old.files.size() == wanted.size() &&
         std::ranges::all_of(wanted,
                             [&old](const RemoteFile& file) {
                               const RemoteFile* before = old.Find(file.path);
                               return before != nullptr && before->hash == file.hash;
                             }) &&
         HasAllFiles(old, folder);
}

// Downloads the files of one pull on a few connections at a time.
class Downloads {
 public:
  Downloads(const PullOptions& options, const std::string& commit, const Staging& staging,
            std::vector<RemoteFile> files, const std::optional<Manifest>& old)
      : options_(options), commit_(commit), staging_(staging), files_(std::move(files)), old_(old) {
    // The longest first, so that the last to end are short.
    std::ranges::stable_sort(files_, std::greater<>(), &RemoteFile::size);
    for (const RemoteFile& file : files_) {
      if (!MayReuse(file)) missing_ += file.size - staging_.BytesThere(file);
    }
  }

  // Before Run.
  int64_t bytes_missing() const { return missing_; }
  int64_t downloaded_bytes() const { return std::max<int64_t>(bytes_, 0); }

  Status Run(const PullProgress& progress) {
    std::vector<std::jthread> threads;
    const size_t count =
        std::min(static_cast<size_t>(options_.num_connections), std::max<size_t>(files_.size(), 1));
    num_running_ = static_cast<int>(count);
    int naps = 0;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([this] { Work(); });
    while (num_running_ > 0) {
      std::this_thread::sleep_for(naps++ < 20 ? kShortNap : kProgressInterval);
      if (progress) progress(downloaded_bytes(), bytes_missing());
    }
    threads.clear();
    return first_fault_;
  }

 private:
  static constexpr std::chrono::milliseconds kShortNap{5};  // small pulls end at once

  void Work() {
    try {
      FetchAll();
    } catch (const std::exception& error) {  // the standard library's, when memory is short
      NoteFault(Status::Internal(Quoted(error.what())));
    }
    --num_running_;
  }

  void FetchAll() {
    HttpClient client(options_.http, &stop_);
    while (!stop_) {
      const size_t index = next_++;
      if (index >= files_.size()) break;
      const Status status = Fetch(files_[index], &client);
      if (!status.ok()) NoteFault(status);
    }
  }

  bool MayReuse(const RemoteFile& file) const {
    const RemoteFile* before = old_ ? old_->Find(file.path) : nullptr;
    return before != nullptr && before->hash == file.hash;
  }

  Status Fetch(const RemoteFile& file, HttpClient* client) {
    if (MayReuse(file) && !staging_.IsDone(file)) staging_.Reuse(file);
    if (staging_.IsDone(file)) return Status::Ok();
    FileDownload download;
    download.file = file;
    download.url =
        fmt::format("{}/{}/resolve/{}/{}", options_.http.endpoint,
                    PercentEncoded(options_.repo.id()), commit_, PercentEncoded(file.path));
    download.part_path = staging_.PartPath(file);
    download.done_path = staging_.DonePath(file);
    return RunDownload(download, options_.retry, &stop_, client, &bytes_);
  }

  // The first one counts; the others end because of it.
  void NoteFault(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (first_fault_.ok()) first_fault_ = status;
    stop_ = true;
  }

  const PullOptions& options_;
  const std::string& commit_;
  const Staging& staging_;
  std::vector<RemoteFile> files_;
  const std::optional<Manifest>& old_;
  int64_t missing_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<int> num_running_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  Status first_fault_;
};

Status CheckFreeSpace(const Staging& staging, int64_t missing, const std::string& target) {
  ASSIGN_OR_RETURN(const int64_t available, staging.FreeBytes());
  if (missing <= available) return Status::Ok();
  return Status::ResourceExhausted(fmt::format(
      "{}: free space on the disk: expected {} bytes, found {}", target, missing, available));
}

}  // namespace

Result<RemoteModel> ListModel(const RepoName& repo, const std::string& endpoint,
                              const RetryPolicy& retry, HttpClient* client) {
  RemoteModel model;
  const std::string revision =
      ApiAddress(endpoint, repo, "revision") + EncodedRevision(repo.revision);
  ASSIGN_OR_RETURN(const std::string text,
                   FetchText(revision, kMaxReplyBytes, retry, nullptr, client, nullptr));
  ASSIGN_OR_RETURN(model.commit, ParseRevision(text, repo.full()));
  std::string url = ApiAddress(endpoint, repo, "tree") + model.commit + "?recursive=true";
  for (int page = 0; !url.empty(); ++page) {
    if (page == kMaxPages) {
      return Status::Corrupt(fmt::format("{}: listing: expected at most {} pages, found more",
                                         repo.full(), kMaxPages));
    }
    std::string link;
    ASSIGN_OR_RETURN(const std::string list,
                     FetchText(url, kMaxReplyBytes, retry, nullptr, client, &link));
    const std::string what = repo.full() + ": listing";
    RETURN_IF_ERROR(AppendListing(list, what, &model.files));
    const std::string next = NextPage(link);
    if (next.empty()) break;
    ASSIGN_OR_RETURN(const WebAddress base, ParseWebAddress(url));
    ASSIGN_OR_RETURN(const WebAddress address, ResolveWebAddress(base, next));
    url = address.url;
  }
  RETURN_IF_ERROR(CheckListing(repo.full() + ": listing", &model.files));
  return model;
}

Result<PullReport> PullModel(const PullOptions& options, const PullProgress& progress) {
  RETURN_IF_ERROR(CheckEndpoint(options.http.endpoint));
  ASSIGN_OR_RETURN(std::optional<Manifest> old, ReadTarget(options));
  HttpClient client(options.http, nullptr);
  ASSIGN_OR_RETURN(const RemoteModel model,
                   ListModel(options.repo, options.http.endpoint, options.retry, &client));
  Manifest manifest{.repo = options.repo,
                    .commit = model.commit,
                    .endpoint = options.http.endpoint,
                    .pulled_at = UtcNow()};
  ASSIGN_OR_RETURN(Staging staging, Staging::Open(options.target));
  ASSIGN_OR_RETURN(old, ReadTarget(options));  // again: nobody changes it from here on
  ASSIGN_OR_RETURN(manifest.files, Wanted(options, model, old));
  PullReport report{.commit = model.commit,
                    .num_files = static_cast<int>(manifest.files.size()),
                    .num_bytes = manifest.total_bytes()};
  if (old && IsUpToDate(*old, manifest.files, options.target)) {
    report.was_up_to_date = true;
    RETURN_IF_ERROR(staging.Discard());
    return report;
  }
  Downloads downloads(options, model.commit, staging, manifest.files, old);
  RETURN_IF_ERROR(CheckFreeSpace(staging, downloads.bytes_missing(), options.target));
  RETURN_IF_ERROR(downloads.Run(progress));
  RETURN_IF_ERROR(staging.Publish(manifest));
  report.downloaded_bytes = downloads.downloaded_bytes();
  return report;
}

}  // namespace hadal
