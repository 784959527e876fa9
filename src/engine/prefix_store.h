// The prefix cache on disk: a folder of blocks, kept across restarts. Knows names, sizes and how
// long each was not used; what is in the files is checked when they are read. Any thread.
//
// FOLDER/<model>/<key>-<block>.rows: the key is the hash of all tokens up to the block's end, and
// <block> its place in the prefix. Several processes may share a folder: files appear complete and
// are never changed, and one that has gone is a miss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "base/types.h"

namespace hadal {

struct PrefixStoreOptions {
  std::string folder;
  int64_t max_bytes = int64_t{10} << 30;  // of all files in the folder, those of other models too
  Hash128 rows_key = {};                  // ModelInfo::rows_key, not zero
  int block_tokens = 0;
  int64_t block_bytes = 0;
  // What was used within so many seconds is not thrown out for something new, so that prompts which
  // do not fit together do not throw each other out for ever.
  int64_t min_age_s = 60;
  std::function<int64_t()> now_s = {};  // empty: the system's clock, in seconds since 1970
};

struct PrefixStoreStats {
  int64_t bytes = 0;
  int64_t num_files = 0;
  int64_t num_writes = 0;
  int64_t num_faults = 0;  // files that were torn, foreign or unreadable
};

// The keys of the full blocks of `tokens`.
std::vector<Hash128> PrefixKeys(const Hash128& salt, std::span<const TokenId> tokens,
                                int block_tokens);

// Of which block which prefix.
struct PrefixBlock {
  Hash128 key;
  Hash128 salt;
  int block_idx = 0;
  std::span<const TokenId> prefix;  // (block_idx + 1) * block_tokens tokens
};

class PrefixStore {
 public:
  // Makes the folder where it is missing and reads its names. kIo when that fails; kUnsupported
  // when the rows cannot be kept (no rows_key).
  static Result<std::unique_ptr<PrefixStore>> Open(PrefixStoreOptions options);

  const PrefixStoreOptions& options() const { return options_; }
  PrefixStoreStats stats() const;

  // How many of keys[first], keys[first + 1] ... are there in a row, by their names.
  int CountFrom(std::span<const Hash128> keys, int first) const;

  // Marks a block as about to be written. False when it is there, or is being written. Write() or
  // Unclaim() must follow.
  bool Claim(const Hash128& key);
  void Unclaim(const Hash128& key);
  bool HasOrClaimed(const Hash128& key) const;

  // Writes a claimed block and makes room for it. What cannot be written is logged and left.
  void Write(const PrefixBlock& block, std::span<const std::byte> rows);

  // Reads a block; false when it is not there or not sound. Such a file is logged, forgotten and,
  // when it is torn, removed.
  bool Read(const PrefixBlock& block, std::span<std::byte> rows);

  // The first `count` of these blocks were used just now.
  void Touch(std::span<const Hash128> keys, int count);

 private:
  struct Entry {
    std::string path;
    int64_t bytes = 0;
    int64_t used_s = 0;
    int block_idx = 0;
  };
  // First what was not used for longest; of one prompt's blocks the last one first, because without
  // those before it a block is worth nothing.
  using Rank = std::tuple<int64_t, int, Hash128>;
  static Rank RankOf(const Hash128& key, const Entry& entry) {
    return {entry.used_s, -entry.block_idx, key};
  }

  explicit PrefixStore(PrefixStoreOptions options);
  Status ReadNames();
  void AddFound(const std::string& path, const std::string& model, const std::string& name);
  std::string PathOf(const Hash128& key, int block_idx) const;
  // All below: REQUIRES mutex_.
  void Insert(const Hash128& key, Entry entry);
  void Drop(const Hash128& key);
  bool MakeRoom(int64_t bytes, std::vector<std::string>* to_remove);

  const PrefixStoreOptions options_;
  std::string model_folder_;
  mutable std::mutex mutex_;
  std::unordered_map<Hash128, Entry, Hash128Hasher> entries_;
  std::set<Rank> order_;
  std::unordered_set<Hash128, Hash128Hasher> claimed_;
  PrefixStoreStats stats_;
  bool has_told_full_ = false;
};

}  // namespace hadal
