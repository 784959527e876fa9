// One file of the prefix cache on disk: the cache rows of one block, and everything they depend on.
// A file counts only if all of that is equal and its checksums are right; so it does not matter who
// wrote it, or whether it was written to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/status.h"
#include "base/types.h"

namespace hadal {

struct PrefixFileId {
  Hash128 rows_key;  // ModelInfo::rows_key
  Hash128 salt;
  int block_tokens = 0;
  std::span<const TokenId> prefix;  // all tokens up to the end of the block
};

// Writes `path` under another name first, and renames it when it is complete. kIo with the system's
// reason.
Status WritePrefixFile(const std::string& path, const PrefixFileId& id,
                       std::span<const std::byte> rows);

// Reads the rows. kNotFound: no file. kUnsupported: not a file of this cache and version, or of
// another model. kCorrupt: cut short or changed. kIo: the system refused. The messages name the
// file.
Status ReadPrefixFile(const std::string& path, const PrefixFileId& id, std::span<std::byte> rows);

// The size of a file.
int64_t PrefixFileBytes(size_t num_prefix_tokens, int64_t num_row_bytes);

// The end of the names of files that are being written.
inline constexpr const char* kUnfinishedSuffix = ".part";

}  // namespace hadal
