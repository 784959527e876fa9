// Counter-based random numbers: a draw is a function of (seed, position), so it does not depend on
// how many draws other sequences took, on batching, or on whether drafts were verified along the
// way.
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace hadal {

// 64 random bits of stream `stream` at (seed, position).
constexpr uint64_t RandomBits(uint64_t seed, uint64_t position, uint64_t stream = 0) {
  Hash128 key = Extend(Extend(Extend({}, seed), position), stream);
  return Mix64(key.lo ^ (key.hi * 0x9e3779b97f4a7c15ULL));
}

// Uniform in [0, 1), a multiple of 2^-53.
constexpr double RandomUnit(uint64_t seed, uint64_t position, uint64_t stream = 0) {
  return static_cast<double>(RandomBits(seed, position, stream) >> 11) * 0x1.0p-53;
}

}  // namespace hadal
