// Integers in registers, as the products of rounded rows take them.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace hadal::avx2 {
namespace {

// What follows must become one loop body without calls: every address in it is then a constant away
// from a pointer in a register.
#define HADAL_INLINE [[gnu::always_inline]] inline

HADAL_INLINE __m256i LoadInts(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

// Four bytes at any address, in every lane.
HADAL_INLINE __m256i BroadcastWord(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return _mm256_set1_epi32(word);
}

// sum + term, formed here and now: left alone, the compiler forms all terms of a group first and
// keeps them in memory, which takes twice the time.
HADAL_INLINE __m256i AddWordsNow(__m256i sum, __m256i term) {
  sum = _mm256_add_epi16(sum, term);
  asm("" : "+x"(sum));
  return sum;
}
HADAL_INLINE __m256i AddIntsNow(__m256i sum, __m256i term) {
  sum = _mm256_add_epi32(sum, term);
  asm("" : "+x"(sum));
  return sum;
}

// Fetches `bytes` bytes; past the end of a weight it is harmless.
template <int bytes>
HADAL_INLINE void Prefetch(const char* p) {
#pragma GCC unroll 32
  for (int line = 0; line < bytes; line += 64) _mm_prefetch(p + line, _MM_HINT_T0);
}

// The same for what comes behind `p`, so far that the memory has answered by then. The processor
// follows one stream by itself, but not as far ahead as products of few rows go through it.
template <int bytes>
HADAL_INLINE void PrefetchAhead(const char* p) {
  Prefetch<bytes>(p + 4096);
}

constexpr int Least(int a, int b) { return a < b ? a : b; }

}  // namespace
}  // namespace hadal::avx2
