// Where a block of eight outputs is, row by row or turned (block_layout.h), and how its words come
// into registers: lane o has the one of output o.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/avx2/blocks.h"
#include "kernels/avx2/ints.h"

namespace hadal::avx2 {
namespace {

// Four words that follow each other.
struct FourWords {
  __m256i word[4];
};

// Rows as stored. They are turned on the way: the processor's own prefetchers lose eight streams
// that end soon.
class StoredRows {
 public:
  static constexpr bool kIsTurned = false;

  HADAL_INLINE StoredRows(const char* first, int64_t row_bytes)
      : first_(first), row_bytes_(row_bytes) {}

  // The next block, so many bytes on in each row.
  HADAL_INLINE StoredRows Plus(int64_t bytes) const { return {first_ + bytes, row_bytes_}; }

  HADAL_INLINE FourWords Words(int offset) const {
    __m256i pair[4];
#pragma GCC unroll 4
    for (int o = 0; o < 4; ++o) {
      const __m128i low = _mm_loadu_si128(At128(At(o) + offset));
      pair[o] = _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                        _mm_loadu_si128(At128(At(o + 4) + offset)), 1);
    }
    const __m256i low01 = _mm256_unpacklo_epi32(pair[0], pair[1]);
    const __m256i high01 = _mm256_unpackhi_epi32(pair[0], pair[1]);
    const __m256i low23 = _mm256_unpacklo_epi32(pair[2], pair[3]);
    const __m256i high23 = _mm256_unpackhi_epi32(pair[2], pair[3]);
    return {{_mm256_unpacklo_epi64(low01, low23), _mm256_unpackhi_epi64(low01, low23),
             _mm256_unpacklo_epi64(high01, high23), _mm256_unpackhi_epi64(high01, high23)}};
  }
  HADAL_INLINE __m256i Word(int offset) const {
    return _mm256_setr_epi32(WordOf(0, offset), WordOf(1, offset), WordOf(2, offset),
                             WordOf(3, offset), WordOf(4, offset), WordOf(5, offset),
                             WordOf(6, offset), WordOf(7, offset));
  }
  HADAL_INLINE __m128i Shorts(int offset) const {
    return _mm_setr_epi16(ShortOf(0, offset), ShortOf(1, offset), ShortOf(2, offset),
                          ShortOf(3, offset), ShortOf(4, offset), ShortOf(5, offset),
                          ShortOf(6, offset), ShortOf(7, offset));
  }

  // Part `part` of num_parts of the next eight outputs, beside these; a prefetch past the end is
  // harmless.
  template <int bytes, int part, int num_parts>
  HADAL_INLINE void Prefetch() const {
#pragma GCC unroll 8
    for (int o = part; o < 8; o += num_parts) {
#pragma GCC unroll 4
      for (int line = 0; line < bytes; line += 64) {
        _mm_prefetch(At(o + 8) + line, _MM_HINT_T1);
      }
    }
  }

 private:
  HADAL_INLINE const char* At(int o) const { return first_ + o * row_bytes_; }
  HADAL_INLINE int32_t WordOf(int o, int offset) const {
    return static_cast<int32_t>(WordAt(At(o) + offset));
  }
  HADAL_INLINE int16_t ShortOf(int o, int offset) const {
    int16_t bits;
    __builtin_memcpy(&bits, At(o) + offset, sizeof(bits));
    return bits;
  }

  const char* first_;
  int64_t row_bytes_;
};

// Turned when the weight was loaded.
class TurnedRows {
 public:
  static constexpr bool kIsTurned = true;

  HADAL_INLINE TurnedRows(const char* first, int64_t) : first_(first) {}

  HADAL_INLINE TurnedRows Plus(int64_t bytes) const { return {first_ + 8 * bytes, 0}; }

  HADAL_INLINE FourWords Words(int offset) const {
    return {{Word(offset), Word(offset + 4), Word(offset + 8), Word(offset + 12)}};
  }
  HADAL_INLINE __m256i Word(int offset) const { return LoadInts(At(offset)); }
  HADAL_INLINE __m128i Shorts(int offset) const { return _mm_loadu_si128(At128(At(offset))); }

  template <int bytes, int part, int num_parts>
  HADAL_INLINE void Prefetch() const {
    constexpr int kPartBytes = 8 * bytes / num_parts;
    PrefetchAhead<kPartBytes>(first_ + part * kPartBytes);
  }

  // Where byte `offset` of the blocks is.
  HADAL_INLINE const char* At(int offset) const { return first_ + 8 * offset; }

 private:
  const char* first_;
};

}  // namespace
}  // namespace hadal::avx2
