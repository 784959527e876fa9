// Integers in registers: sixteen ints, of which each sums four products of bytes or two of words.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace hadal::avx512 {
namespace {

// What follows must become one loop body without calls: every address in it is then a constant away
// from a pointer in a register.
#define HADAL_INLINE [[gnu::always_inline]] inline

HADAL_INLINE __m512i LoadInts(const void* p) { return _mm512_loadu_si512(p); }

// Four bytes at any address, in every lane.
HADAL_INLINE __m512i BroadcastWord(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return _mm512_set1_epi32(word);
}
HADAL_INLINE __m512i BroadcastLong(const void* p) {
  int64_t four_words;
  __builtin_memcpy(&four_words, p, sizeof(four_words));
  return _mm512_set1_epi64(four_words);
}
HADAL_INLINE __m512 BroadcastFloat(const void* p) { return _mm512_castsi512_ps(BroadcastWord(p)); }

// sum + a * b in place: left to itself, the compiler copies sums from register to register.
// Bytes, `a` without and `b` with a sign:
HADAL_INLINE void AddByteProducts(__m512i a, __m512i b, __m512i* sum) {
  asm("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}
// Words:
HADAL_INLINE void AddWordProducts(__m512i a, __m512i b, __m512i* sum) {
  asm("vpdpwssd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}

// So far ahead of their use weights are fetched: the memory has answered by then, and what four
// tiles fetch stays in the first cache.
constexpr int64_t kFetchAhead = 2048;

// Fetches `bytes` bytes; past the end of a weight it is harmless.
template <int bytes>
HADAL_INLINE void Prefetch(const char* p) {
#pragma GCC unroll 32
  for (int line = 0; line < bytes; line += 64) _mm_prefetch(p + line, _MM_HINT_T0);
}

constexpr int Least(int a, int b) { return a < b ? a : b; }
constexpr int RoundUpTo(int n, int unit) { return (n + unit - 1) / unit * unit; }

// The first `count` lanes of sixteen; all or none beyond that.
HADAL_INLINE __mmask16 FirstLanes(int count) {
  return count >= 16 ? __mmask16{0xFFFF}
                     : static_cast<__mmask16>(count <= 0 ? 0 : (1 << count) - 1);
}

template <int kRows>
struct RowCount {
  static constexpr int kCount = kRows;
};
// body(RowCount, first) for all rows, kTile at a time, which is at most 8.
template <int kTile, class Body>
HADAL_INLINE void ForRowTiles(int num_rows, const Body& body) {
  int r = 0;
  for (; r + kTile <= num_rows; r += kTile) body(RowCount<kTile>{}, r);
  switch (num_rows - r) {
    case 7:
      if constexpr (kTile > 7) body(RowCount<7>{}, r);
      break;
    case 6:
      if constexpr (kTile > 6) body(RowCount<6>{}, r);
      break;
    case 5:
      if constexpr (kTile > 5) body(RowCount<5>{}, r);
      break;
    case 4:
      if constexpr (kTile > 4) body(RowCount<4>{}, r);
      break;
    case 3:
      if constexpr (kTile > 3) body(RowCount<3>{}, r);
      break;
    case 2:
      body(RowCount<2>{}, r);
      break;
    case 1:
      body(RowCount<1>{}, r);
      break;
    default:
      break;
  }
}

}  // namespace
}  // namespace hadal::avx512
