// 128-bit keys for prefixes of tokens. Not for secrets: a hit is confirmed by comparing the tokens.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

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

struct Hash128Hasher {
  size_t operator()(const Hash128& key) const { return static_cast<size_t>(key.lo ^ key.hi); }
};

}  // namespace hadal
