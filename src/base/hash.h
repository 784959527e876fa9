// 128-bit keys for prefixes of tokens. Not for secrets: a hit is confirmed by comparing the tokens.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace hadal {

struct Hash128 {
  uint64_t lo = 0, hi = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

// A bijection of 64 bits in which each input bit moves each output bit about half of the time
// (the finaliser of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014).
constexpr uint64_t Mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

// The key of `state` followed by `value`; order matters.
constexpr Hash128 Extend(Hash128 state, uint64_t value) {
  return {Mix64(state.lo ^ Mix64(value + 0x9e3779b97f4a7c15ULL)),
          Mix64((state.hi + 0xd1b54a32d192ed03ULL) ^ Mix64(value ^ state.lo))};
}

// A checksum of bytes: any change within eight bytes is seen for certain, others but for one in
// 2^64. Four lanes, so that it keeps up with memory. The same on every little-endian machine.
inline uint64_t HashBytes(std::span<const std::byte> bytes, uint64_t seed = 0) {
  constexpr uint64_t kFactor = 0x9fb21c651e98df25ULL;  // odd: multiplication loses nothing
  std::array<uint64_t, 4> lanes = {Mix64(seed + 1), Mix64(seed + 2), Mix64(seed + 3),
                                   Mix64(seed + 4)};
  const auto absorb = [&lanes](size_t lane, uint64_t word) {
    lanes[lane] = std::rotl((lanes[lane] ^ word) * kFactor, 29);
  };
  const size_t num_words = bytes.size() / sizeof(uint64_t);
  uint64_t word = 0;
  for (size_t i = 0; i < num_words; ++i) {
    std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
    absorb(i % 4, word);
  }
  word = 0;
  const size_t rest = bytes.size() - num_words * sizeof word;
  if (rest > 0) std::memcpy(&word, bytes.data() + num_words * sizeof word, rest);
  absorb(num_words % 4, word);
  uint64_t sum = Mix64(bytes.size());
  for (const uint64_t lane : lanes) sum = Mix64(sum ^ lane) * kFactor;
  return sum;
}

struct Hash128Hasher {
  size_t operator()(const Hash128& key) const { return static_cast<size_t>(key.lo ^ key.hi); }
};

}  // namespace hadal
