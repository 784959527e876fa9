#include "engine/prefix_store.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cache/prefix_index.h"
#include "engine/prefix_file.h"

namespace hadal {
namespace {

constexpr std::string_view kSuffix = ".rows";
// A file that is still unfinished after so long was left by a process that ended.
constexpr int64_t kAbandonedAfterS = 600;

std::string Hex(const Hash128& key) { return fmt::format("{:016x}{:016x}", key.hi, key.lo); }

std::optional<uint64_t> FromHex(std::string_view text) {
  uint64_t value = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc() || stop != end || text.size() != 16) return std::nullopt;
  return value;
}

// <key>-<block>.rows
std::optional<std::pair<Hash128, int>> ParseName(std::string_view name) {
  if (!name.ends_with(kSuffix) || name.size() < 34 + kSuffix.size() || name[32] != '-')
    return std::nullopt;
  const auto hi = FromHex(name.substr(0, 16)), lo = FromHex(name.substr(16, 16));
  const std::string_view number = name.substr(33, name.size() - 33 - kSuffix.size());
  int block_idx = 0;
  const auto end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, block_idx);
  if (!hi || !lo || error != std::errc() || stop != end || block_idx < 0) return std::nullopt;
  return std::pair(Hash128{*lo, *hi}, block_idx);
}

int64_t SystemSeconds() { return static_cast<int64_t>(std::time(nullptr)); }

}  // namespace

std::vector<Hash128> PrefixKeys(const Hash128& salt, std::span<const TokenId> tokens,
                                int block_tokens) {
  std::vector<Hash128> keys;
  const size_t size = static_cast<size_t>(block_tokens);
  Hash128 key = PrefixIndex::Root(salt).key;
  for (size_t begin = 0; begin + size <= tokens.size(); begin += size) {
    key = HashBlock(key, tokens.subspan(begin, size));
    keys.push_back(key);
  }
  return keys;
}

PrefixStore::PrefixStore(PrefixStoreOptions options)
    : options_(std::move(options)), model_folder_(options_.folder + "/" + Hex(options_.rows_key)) {}

Result<std::unique_ptr<PrefixStore>> PrefixStore::Open(PrefixStoreOptions options) {
  if (options.rows_key == Hash128{} || options.block_bytes <= 0)
    return Status::Unsupported(
        fmt::format("{}: the cache rows of this model cannot be kept", options.folder));
  if (!options.now_s) options.now_s = &SystemSeconds;
  if (PrefixFileBytes(static_cast<size_t>(options.block_tokens), options.block_bytes) >
      options.max_bytes) {
    Log(LogLevel::kWarning,
        "{}: a block of {} bytes is larger than the limit of {} bytes: nothing "
        "will be kept",
        options.folder, options.block_bytes, options.max_bytes);
  }
  auto store = std::unique_ptr<PrefixStore>(new PrefixStore(std::move(options)));
  RETURN_IF_ERROR(store->ReadNames());
  return store;
}

Status PrefixStore::ReadNames() {
  std::error_code error;
  std::filesystem::create_directories(model_folder_, error);
  if (error) return Status::Io(fmt::format("{}: {}", model_folder_, error.message()));
  if (access(model_folder_.c_str(), R_OK | W_OK | X_OK) != 0)
    return Status::Io(fmt::format("{}: {}", model_folder_, std::strerror(errno)));
  for (std::filesystem::directory_iterator model(options_.folder, error), end;
       !error && model != end; model.increment(error)) {
    std::error_code inner;
    if (!model->is_directory(inner)) continue;
    const std::string folder = model->path().filename().string();
    for (std::filesystem::directory_iterator file(model->path(), inner); !inner && file != end;
         file.increment(inner))
      AddFound(file->path().string(), folder, file->path().filename().string());
  }
  if (error) return Status::Io(fmt::format("{}: {}", options_.folder, error.message()));
  return Status::Ok();
}

// Files with other names are not ours and are left alone.
void PrefixStore::AddFound(const std::string& path, const std::string& model,
                           const std::string& name) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (name.ends_with(kUnfinishedSuffix)) {
    const bool is_ours = name.size() > 33 &&
                         ParseName(name.substr(0, name.find(kSuffix) + kSuffix.size())).has_value();
    if (is_ours && options_.now_s() - info.st_mtime > kAbandonedAfterS) unlink(path.c_str());
    return;
  }
  const auto parsed = ParseName(name);
  if (!parsed) return;
  auto [key, block_idx] = *parsed;
  // Those of other models only take room: no prompt of this one has their key.
  const Hash128 model_key{HashBytes(std::as_bytes(std::span(model))), 0};
  if (model != Hex(options_.rows_key)) key = Extend(key, model_key.lo);
  Insert(key, {.path = path,
               .bytes = info.st_size,
               .used_s = static_cast<int64_t>(info.st_mtime),
               .block_idx = block_idx});
}

std::string PrefixStore::PathOf(const Hash128& key, int block_idx) const {
  return fmt::format("{}/{}-{}{}", model_folder_, Hex(key), block_idx, kSuffix);
}

void PrefixStore::Insert(const Hash128& key, Entry entry) {
  Drop(key);
  order_.insert(RankOf(key, entry));
  stats_.bytes += entry.bytes;
  entries_.emplace(key, std::move(entry));
}

void PrefixStore::Drop(const Hash128& key) {
  const auto place = entries_.find(key);
  if (place == entries_.end()) return;
  order_.erase(RankOf(key, place->second));
  stats_.bytes -= place->second.bytes;
  entries_.erase(place);
}

PrefixStoreStats PrefixStore::stats() const {
  const std::lock_guard lock(mutex_);
  PrefixStoreStats stats = stats_;
  stats.num_files = static_cast<int64_t>(entries_.size());
  return stats;
}

int PrefixStore::CountFrom(std::span<const Hash128> keys, int first) const {
  const std::lock_guard lock(mutex_);
  size_t end = static_cast<size_t>(first);
  while (end < keys.size() && entries_.contains(keys[end])) ++end;
  return static_cast<int>(end) - first;
}

bool PrefixStore::Claim(const Hash128& key) {
  const std::lock_guard lock(mutex_);
  return !entries_.contains(key) && claimed_.insert(key).second;
}

void PrefixStore::Unclaim(const Hash128& key) {
  const std::lock_guard lock(mutex_);
  claimed_.erase(key);
}

bool PrefixStore::HasOrClaimed(const Hash128& key) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(key) || claimed_.contains(key);
}

// False, with nothing thrown out, when what would have to go was used just now.
bool PrefixStore::MakeRoom(int64_t bytes, std::vector<std::string>* to_remove) {
  if (bytes > options_.max_bytes) return false;
  const int64_t newest_s = options_.now_s() - options_.min_age_s;
  int64_t freed = 0;
  std::vector<Hash128> victims;
  for (auto place = order_.begin(); stats_.bytes - freed + bytes > options_.max_bytes; ++place) {
    if (place == order_.end() || std::get<0>(*place) > newest_s) return false;
    victims.push_back(std::get<2>(*place));
    freed += entries_.at(victims.back()).bytes;
  }
  for (const Hash128& key : victims) {
    to_remove->push_back(entries_.at(key).path);
    Drop(key);
  }
  return true;
}

void PrefixStore::Write(const PrefixBlock& block, std::span<const std::byte> rows) {
  const int64_t bytes = PrefixFileBytes(block.prefix.size(), static_cast<int64_t>(rows.size()));
  std::vector<std::string> to_remove;
  bool has_room = false;
  {
    const std::lock_guard lock(mutex_);
    has_room = MakeRoom(bytes, &to_remove);
    if (has_room) stats_.bytes += bytes;  // taken while it is written
    if (!has_room && !std::exchange(has_told_full_, true)) {
      Log(LogLevel::kWarning,
          "{}: full, and all of it is in use: some prefixes are not kept (limit {} bytes)",
          options_.folder, options_.max_bytes);
    }
  }
  for (const std::string& path : to_remove) unlink(path.c_str());
  if (!has_room) return Unclaim(block.key);
  const std::string path = PathOf(block.key, block.block_idx);
  const Status status = WritePrefixFile(path,
                                        {.rows_key = options_.rows_key,
                                         .salt = block.salt,
                                         .block_tokens = options_.block_tokens,
                                         .prefix = block.prefix},
                                        rows);
  const std::lock_guard lock(mutex_);
  stats_.bytes -= bytes;
  claimed_.erase(block.key);
  if (!status.ok()) {
    ++stats_.num_faults;
    return Log(LogLevel::kWarning, "prefix cache: {}", status.message());
  }
  ++stats_.num_writes;
  Insert(block.key,
         {.path = path, .bytes = bytes, .used_s = options_.now_s(), .block_idx = block.block_idx});
}

bool PrefixStore::Read(const PrefixBlock& block, std::span<std::byte> rows) {
  const std::string path = PathOf(block.key, block.block_idx);
  const Status status = ReadPrefixFile(path,
                                       {.rows_key = options_.rows_key,
                                        .salt = block.salt,
                                        .block_tokens = options_.block_tokens,
                                        .prefix = block.prefix},
                                       rows);
  if (status.ok()) return true;
  if (status.code() != StatusCode::kNotFound)
    Log(LogLevel::kWarning, "prefix cache: {}; the file is ignored", status.message());
  if (status.code() == StatusCode::kCorrupt) unlink(path.c_str());
  const std::lock_guard lock(mutex_);
  if (status.code() != StatusCode::kNotFound) ++stats_.num_faults;
  Drop(block.key);
  return false;
}

// The order on disk is the files' own time, set at most once in a while: it need not be exact.
void PrefixStore::Touch(std::span<const Hash128> keys, int count) {
  const int64_t now_s = options_.now_s();
  std::vector<std::string> paths;
  {
    const std::lock_guard lock(mutex_);
    for (const Hash128& key : keys.first(static_cast<size_t>(count))) {
      const auto place = entries_.find(key);
      if (place == entries_.end() || place->second.used_s >= now_s) continue;
      order_.erase(RankOf(key, place->second));
      place->second.used_s = now_s;
      order_.insert(RankOf(key, place->second));
      paths.push_back(place->second.path);
    }
  }
  const timespec time{.tv_sec = now_s, .tv_nsec = 0};
  const timespec times[2] = {time, time};
  for (const std::string& path : paths) utimensat(AT_FDCWD, path.c_str(), times, 0);
}

}  // namespace hadal
