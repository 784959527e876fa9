// checksums.json beside the weights that we wrote: {"algorithm": "hadal-64", "tensors": {name:
// hex}}.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "formats/checkpoint.h"

namespace hadal {

inline constexpr const char* kChecksumFile = "checksums.json";
inline constexpr const char* kChecksumAlgorithm = "hadal-64";

// The checksum of a tensor's bytes (base/checksum.h), sixteen digits.
std::string ChecksumHex(std::span<const std::byte> bytes);

// Reads every tensor that the file lists and compares. Fine where there is no such file. kCorrupt
// names the first tensor that is missing or is not what was written, or the fault of the file.
Status VerifyChecksums(const Checkpoint& checkpoint);

}  // namespace hadal
