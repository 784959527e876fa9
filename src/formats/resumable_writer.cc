#include "formats/resumable_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/quote.h"
#include "formats/checksum_file.h"
#include "formats/sharded_writer.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

constexpr const char* kJournalFile = "quantize.journal";
constexpr int64_t kMaxJournalBytes = int64_t{1} << 30;

Status SystemError(const std::string& path) {
  return Status::Io(fmt::format("{}: {}", path, std::strerror(errno)));
}

Status WriteAll(int fd, std::span<const std::byte> bytes, int64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(path);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
  return Status::Ok();
}

}  // namespace

struct ResumableWriter::State {
  struct File {
    ShardPlan plan;
    std::string path;  // without ".partial"
    bool has_final_name = false;
    SafetensorsLayout layout;
    int fd = -1;
    const std::byte* mapped = nullptr;
  };

  std::string folder;
  std::vector<SafetensorsSpec> specs;
  std::vector<File> files;
  std::vector<int> file_of_spec;
  std::vector<std::string> checksums;  // hex; empty: not written
  int journal_fd = -1;
  int64_t journal_bytes = 0;

  ~State() {
    for (File& file : files) {
      if (file.mapped != nullptr) {
        munmap(const_cast<std::byte*>(file.mapped), static_cast<size_t>(file.layout.file_bytes));
      }
      if (file.fd >= 0) close(file.fd);
    }
    if (journal_fd >= 0) close(journal_fd);
  }

  std::string JournalPath() const { return folder + "/" + kJournalFile; }
  File& FileOf(int spec_idx) {
    return files[static_cast<size_t>(file_of_spec[static_cast<size_t>(spec_idx)])];
  }
  const SafetensorsLayout::Slot& SlotOf(int spec_idx) {
    const File& file = FileOf(spec_idx);
    return file.layout.slots[static_cast<size_t>(spec_idx - file.plan.first_spec)];
  }
  std::span<const std::byte> BytesOf(int spec_idx) {
    const SafetensorsLayout::Slot& slot = SlotOf(spec_idx);
    return {FileOf(spec_idx).mapped + slot.file_offset, static_cast<size_t>(slot.num_bytes)};
  }

  Status PlanFiles(int64_t shard_bytes);
  Status OpenJournal();
  Status ReadJournal(const std::string& fingerprint, bool* is_new);
  Status AppendLine(const Json& line);
  Status OpenFile(File* file);
  void DropDamaged();
};

Status ResumableWriter::State::PlanFiles(int64_t shard_bytes) {
  ASSIGN_OR_RETURN(std::vector<ShardPlan> plans, PlanShards(folder, specs, shard_bytes));
  for (ShardPlan& plan : plans) {
    const auto first = specs.begin() + plan.first_spec;
    file_of_spec.insert(file_of_spec.end(), static_cast<size_t>(plan.num_specs),
                        static_cast<int>(files.size()));
    File& file = files.emplace_back();
    file.path = folder + "/" + plan.name;
    ASSIGN_OR_RETURN(file.layout, LayOutSafetensors(file.path, {first, first + plan.num_specs},
                                                    {{"format", "pt"}}));
    file.plan = std::move(plan);
  }
  checksums.resize(specs.size());
  return Status::Ok();
}

Status ResumableWriter::State::OpenJournal() {
  journal_fd = open(JournalPath().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (journal_fd < 0) return SystemError(JournalPath());
  if (flock(journal_fd, LOCK_EX | LOCK_NB) == 0) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{}: expected nobody else at work in the folder, found another process", folder));
}

// The first line is the fingerprint, each further one a tensor. A last line that was cut off by the
// end of the process does not count.
Status ResumableWriter::State::ReadJournal(const std::string& fingerprint, bool* is_new) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(JournalPath(), kMaxJournalBytes));
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < specs.size(); ++i) places.emplace(specs[i].name, i);
  size_t begin = 0;
  *is_new = true;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    const Result<Json> line =
        ParseJson(std::string_view(text).substr(begin, end - begin), JournalPath());
    if (!line.ok() || !line->is_object()) break;
    if (*is_new) {
      const Result<std::string> found = ReadString(*line, "fingerprint", JournalPath());
      if (!found.ok()) break;
      if (*found != fingerprint) {
        return Status::InvalidArgument(fmt::format(
            "{}: expected the source, recipe and calibration that the work there was begun with, "
            "found others (--force begins anew)",
            folder));
      }
      *is_new = false;
    } else {
      const Result<std::string> name = ReadString(*line, "tensor", JournalPath());
      const Result<std::string> checksum = ReadString(*line, "checksum", JournalPath());
      if (!name.ok() || !checksum.ok()) break;
      const auto place = places.find(*name);
      if (place != places.end()) checksums[place->second] = *checksum;
    }
    begin = end + 1;
  }
  journal_bytes = static_cast<int64_t>(begin);
  if (ftruncate(journal_fd, journal_bytes) != 0) return SystemError(JournalPath());
  return Status::Ok();
}

Status ResumableWriter::State::AppendLine(const Json& line) {
  const std::string text = DumpJson(line) + "\n";
  RETURN_IF_ERROR(
      WriteAll(journal_fd, std::as_bytes(std::span(text)), journal_bytes, JournalPath()));
  journal_bytes += static_cast<int64_t>(text.size());
  return Status::Ok();
}

Status ResumableWriter::State::OpenFile(File* file) {
  const std::string partial = file->path + ".partial";
  file->has_final_name = access(file->path.c_str(), F_OK) == 0;
  const std::string& path = file->has_final_name ? file->path : partial;
  file->fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file->fd < 0) return SystemError(path);
  if (ftruncate(file->fd, file->layout.file_bytes) != 0) return SystemError(path);
  RETURN_IF_ERROR(WriteAll(file->fd, std::as_bytes(std::span(file->layout.header)), 0, path));
  void* mapped = mmap(nullptr, static_cast<size_t>(file->layout.file_bytes), PROT_READ, MAP_SHARED,
                      file->fd, 0);
  if (mapped == MAP_FAILED) return SystemError(path);
  file->mapped = static_cast<const std::byte*>(mapped);
  return Status::Ok();
}

void ResumableWriter::State::DropDamaged() {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!checksums[i].empty() && ChecksumHex(BytesOf(static_cast<int>(i))) != checksums[i]) {
      checksums[i].clear();
    }
  }
}

Result<ResumableWriter> ResumableWriter::Open(const std::string& folder,
                                              std::vector<SafetensorsSpec> specs,
                                              const std::string& fingerprint, int64_t shard_bytes) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->specs = std::move(specs);
  RETURN_IF_ERROR(state->PlanFiles(shard_bytes));
  RETURN_IF_ERROR(state->OpenJournal());
  bool is_new = true;
  RETURN_IF_ERROR(state->ReadJournal(fingerprint, &is_new));
  for (State::File& file : state->files) {
    // A file of another run that has the same name is not ours.
    if (is_new) std::remove(file.path.c_str());
    RETURN_IF_ERROR(state->OpenFile(&file));
  }
  if (is_new) {
    RETURN_IF_ERROR(state->AppendLine({{"fingerprint", fingerprint}}));
  } else {
    state->DropDamaged();
  }
  return ResumableWriter(std::move(state));
}

ResumableWriter::ResumableWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ResumableWriter::ResumableWriter(ResumableWriter&& other) noexcept = default;
ResumableWriter& ResumableWriter::operator=(ResumableWriter&& other) noexcept = default;
ResumableWriter::~ResumableWriter() = default;

int ResumableWriter::num_shards() const { return static_cast<int>(state_->files.size()); }

int64_t ResumableWriter::total_bytes() const {
  int64_t total = 0;
  for (const State::File& file : state_->files) total += file.plan.num_bytes;
  return total;
}

int64_t ResumableWriter::num_bytes(int spec_idx) const {
  return state_->SlotOf(spec_idx).num_bytes;
}

bool ResumableWriter::is_done(int spec_idx) const {
  return !state_->checksums[static_cast<size_t>(spec_idx)].empty();
}

int ResumableWriter::num_done() const {
  int count = 0;
  for (const std::string& checksum : state_->checksums) count += checksum.empty() ? 0 : 1;
  return count;
}

std::span<const std::byte> ResumableWriter::bytes(int spec_idx) const {
  HADAL_CHECK(is_done(spec_idx));
  return state_->BytesOf(spec_idx);
}

Status ResumableWriter::Put(int spec_idx, std::span<const std::byte> bytes) {
  const SafetensorsLayout::Slot& slot = state_->SlotOf(spec_idx);
  HADAL_CHECK(static_cast<int64_t>(bytes.size()) == slot.num_bytes);
  const State::File& file = state_->FileOf(spec_idx);
  RETURN_IF_ERROR(WriteAll(file.fd, bytes, slot.file_offset, file.path));
  const std::string checksum = ChecksumHex(bytes);
  state_->checksums[static_cast<size_t>(spec_idx)] = checksum;
  return state_->AppendLine(
      {{"tensor", state_->specs[static_cast<size_t>(spec_idx)].name}, {"checksum", checksum}});
}

Status ResumableWriter::Finish() {
  Json checksums = {{"algorithm", kChecksumAlgorithm}, {"tensors", Json::object()}};
  for (size_t i = 0; i < state_->specs.size(); ++i) {
    const std::string& name = state_->specs[i].name;
    if (state_->checksums[i].empty()) {
      return Status::InvalidArgument(
          fmt::format("{}: tensor {}: expected to be written", state_->folder, Quoted(name)));
    }
    const std::string found = ChecksumHex(state_->BytesOf(static_cast<int>(i)));
    if (found != state_->checksums[i]) {
      return Status::Corrupt(fmt::format(
          "{}: tensor {}: checksum: expected {}, as written, found {} when read back",
          state_->FileOf(static_cast<int>(i)).path, Quoted(name), state_->checksums[i], found));
    }
    checksums["tensors"][name] = found;
  }
  RETURN_IF_ERROR(WriteWholeFile(state_->folder + "/" + kChecksumFile, DumpJson(checksums) + "\n"));
  std::vector<ShardPlan> plans;
  for (State::File& file : state_->files) {
    plans.push_back(file.plan);
    if (file.has_final_name) continue;
    if (std::rename((file.path + ".partial").c_str(), file.path.c_str()) != 0) {
      return SystemError(file.path);
    }
    file.has_final_name = true;
  }
  const std::string index = state_->folder + "/model.safetensors.index.json";
  if (plans.size() > 1) {
    RETURN_IF_ERROR(WriteWholeFile(index, ShardIndexText(state_->specs, plans)));
  } else {
    std::remove(index.c_str());  // of what lay there before
  }
  if (std::remove(state_->JournalPath().c_str()) != 0) return SystemError(state_->JournalPath());
  return Status::Ok();
}

bool HasJournal(const std::string& folder) {
  return access((folder + "/" + kJournalFile).c_str(), F_OK) == 0;
}

Status RemoveJournal(const std::string& folder) {
  const std::string path = folder + "/" + kJournalFile;
  if (std::remove(path.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  return SystemError(path);
}

}  // namespace hadal
