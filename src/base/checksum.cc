#include "base/checksum.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/hash.h"

namespace hadal {
namespace {

constexpr size_t kLanes = 4;

uint64_t WordAt(const std::byte* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

}  // namespace

uint64_t Checksum(std::span<const std::byte> bytes) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15ULL;  // odd, so that a product loses nothing
  std::array<uint64_t, kLanes> lanes = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + 8 * kLanes <= bytes.size(); at += 8 * kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t mixed = (lanes[lane] ^ WordAt(bytes.data() + at + 8 * lane)) * kFactor;
      lanes[lane] = mixed ^ mixed >> 32;
    }
  }
  uint64_t sum = Mix64(bytes.size());
  for (const uint64_t lane : lanes) sum = Mix64(sum ^ lane);
  while (at < bytes.size()) {
    std::array<std::byte, 8> rest = {};
    const size_t count = std::min<size_t>(8, bytes.size() - at);
    std::copy_n(bytes.data() + at, count, rest.data());
    sum = Mix64(sum ^ WordAt(rest.data()));
    at += count;
  }
  return sum;
}

}  // namespace hadal
