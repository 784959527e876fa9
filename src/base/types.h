// Numbers that do not mix, and the two roundings that everyone needs.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace hadal {

template <class Tag, class Rep = int32_t>
struct Id {
  Rep value = -1;
  friend auto operator<=>(Id, Id) = default;
};

using TokenId = Id<struct TokenTag>;                 // an index into the vocabulary
using BlockId = Id<struct BlockTag>;                 // a page of the latent cache
using SequenceId = Id<struct SequenceTag, int64_t>;  // never reused in a process

// REQUIRES: a >= 0, b > 0.
template <class T>
constexpr T CeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
template <class T>
constexpr T RoundUp(T a, T b) {
  return CeilDiv(a, b) * b;
}

}  // namespace hadal

template <class Tag, class Rep>
struct std::hash<hadal::Id<Tag, Rep>> {
  size_t operator()(hadal::Id<Tag, Rep> id) const { return std::hash<Rep>()(id.value); }
};
