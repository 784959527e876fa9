#include "hub/file_download.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/quote.h"
#include "hub/part_file.h"

namespace hadal {
namespace {

constexpr int kMaxWrongHashes = 2;

// "bytes 100-199/200" -> 100; -1 when it is not that.
int64_t RangeBegin(const std::string& content_range) {
  constexpr std::string_view kUnit = "bytes ";
  if (!content_range.starts_with(kUnit)) return -1;
  int64_t begin = -1;
  for (const char c : content_range.substr(kUnit.size())) {
    if (c == '-') return begin;
    if (c < '0' || c > '9' || begin > (int64_t{1} << 50)) return -1;
    begin = std::max<int64_t>(begin, 0) * 10 + (c - '0');
  }
  return -1;
}

// Takes a reply into the part file, whether or not the server honoured the range.
class PartSink : public BodySink {
 public:
  PartSink(const RemoteFile& file, PartFile* part, std::atomic<int64_t>* bytes)
      : file_(file), part_(part), bytes_(bytes) {}

  Status Begin(const HttpHead& head) override {
    position_ = head.status == 206 ? RangeBegin(head.content_range) : 0;
    if (position_ < 0 || position_ > part_->num_bytes()) {
      return Wrong(fmt::format("range from byte {}", part_->num_bytes()),
                   fmt::format("Content-Range {}", Quoted(head.content_range)));
    }
    if (head.content_length >= 0 && position_ + head.content_length != file_.size) {
      return Wrong(fmt::format("{} bytes, as listed", file_.size),
                   fmt::format("{}", position_ + head.content_length));
    }
    return Status::Ok();
  }

  // Bytes that are there already are skipped: a server that ignores ranges sends them again.
  Status Write(std::span<const std::byte> bytes) override {
    if (static_cast<int64_t>(bytes.size()) > file_.size - position_) {
      return Wrong(fmt::format("{} bytes, as listed", file_.size), "more");
    }
    const int64_t known =
        std::min<int64_t>(part_->num_bytes() - position_, static_cast<int64_t>(bytes.size()));
    position_ += static_cast<int64_t>(bytes.size());
    RETURN_IF_ERROR(part_->Append(bytes.subspan(static_cast<size_t>(known))));
    *bytes_ += static_cast<int64_t>(bytes.size()) - known;
    return Status::Ok();
  }

 private:
  Status Wrong(const std::string& expected, const std::string& found) const {
    return Status::Corrupt(
        fmt::format("{}: expected {}, found {}", Quoted(file_.path), expected, found));
  }

  const RemoteFile& file_;
  PartFile* part_;
  std::atomic<int64_t>* bytes_;
  int64_t position_ = 0;
};

class TextSink : public BodySink {
 public:
  TextSink(const std::string& url, int64_t max_bytes) : url_(url), max_bytes_(max_bytes) {}

  Status Begin(const HttpHead&) override {
    text.clear();
    return Status::Ok();
  }
  Status Write(std::span<const std::byte> bytes) override {
    if (static_cast<int64_t>(text.size() + bytes.size()) > max_bytes_) {
      return Status::Corrupt(
          fmt::format("{}: expected at most {} bytes, found more", Quoted(url_, 300), max_bytes_));
    }
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Status::Ok();
  }

  std::string text;

 private:
  const std::string& url_;
  int64_t max_bytes_;
};

class Downloader {
 public:
  Downloader(const FileDownload& download, PartFile part, HttpClient* client,
             std::atomic<int64_t>* bytes)
      : download_(download), part_(std::move(part)), client_(client), bytes_(bytes) {}

  Status Run(Retry* retry) {
    while (true) {
      RETURN_IF_ERROR(FetchRest(retry));
      const std::string found = part_.FinishHash();
      if (found == file().hash) return part_.Publish(download_.done_path);
      RETURN_IF_ERROR(StartAgain());
      if (++num_wrong_hashes_ < kMaxWrongHashes && retry->WaitForNext(0)) continue;
      return Status::Corrupt(fmt::format("{}: {}: expected {}, found {}", Quoted(file().path),
                                         HashKindName(file().hash_kind), file().hash, found));
    }
  }

 private:
  const RemoteFile& file() const { return download_.file; }

  // Until the part has its full size.
  Status FetchRest(Retry* retry) {
    while (part_.num_bytes() < file().size) {
      PartSink sink(file(), &part_, bytes_);
      const HttpOutcome outcome = client_->Get(download_.url, part_.num_bytes(), &sink);
      if (part_.num_bytes() > farthest_) {
        farthest_ = part_.num_bytes();
        retry->NoteProgress();
      }
      if (part_.num_bytes() == file().size) return Status::Ok();
      // Its end was cut off without a word, or the server lies about lengths and ranges: both may
      // pass. A part that the server knows nothing of does not.
      const bool is_lie = outcome.status.ok() || outcome.status.code() == StatusCode::kCorrupt;
      if (outcome.head.status == 416) RETURN_IF_ERROR(StartAgain());
      if (!outcome.may_retry && !is_lie) return outcome.status;
      if (retry->WaitForNext(outcome.wait_s)) continue;
      if (!outcome.status.ok()) return outcome.status;
      return Status::Corrupt(fmt::format("{}: expected {} bytes, as listed, found {}",
                                         Quoted(file().path), file().size, part_.num_bytes()));
    }
    return Status::Ok();
  }

  Status StartAgain() {
    *bytes_ -= part_.num_bytes();
    return part_.StartAgain();
  }

  const FileDownload& download_;
  PartFile part_;
  HttpClient* client_;
  std::atomic<int64_t>* bytes_;
  int64_t farthest_ = 0;
  int num_wrong_hashes_ = 0;
};

}  // namespace

Status RunDownload(const FileDownload& download, const RetryPolicy& policy,
                   const std::atomic<bool>* stop, HttpClient* client, std::atomic<int64_t>* bytes) {
  ASSIGN_OR_RETURN(PartFile part,
                   PartFile::Open(download.part_path, download.file.hash_kind, download.file.size));
  Retry retry(policy, std::hash<std::string>()(download.part_path), stop);
  return Downloader(download, std::move(part), client, bytes).Run(&retry);
}

Result<std::string> FetchText(const std::string& url, int64_t max_bytes, const RetryPolicy& policy,
                              const std::atomic<bool>* stop, HttpClient* client,
                              std::string* link) {
  Retry retry(policy, std::hash<std::string>()(url), stop);
  while (true) {
    TextSink sink(url, max_bytes);
    const HttpOutcome outcome = client->Get(url, 0, &sink);
    if (outcome.status.ok()) {
      if (link != nullptr) *link = outcome.head.link;
      return std::move(sink.text);
    }
    if (!outcome.may_retry || !retry.WaitForNext(outcome.wait_s)) return outcome.status;
  }
}

}  // namespace hadal
