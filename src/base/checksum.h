// A checksum of bytes that lie on a disk: finds what was damaged, not what somebody forged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hadal {

// 64 bits; of a word of eight bytes each bit moves half of them. Four words are mixed at a time.
uint64_t Checksum(std::span<const std::byte> bytes);

}  // namespace hadal
