// Weighted values on rows of words. What a tile of values holds of one group of columns is brought
// into pairs of values once, in the first cache, for all queries.
#include "kernels/avx512/parts.h"
#include "kernels/avx512/words.h"

namespace hadal::avx512 {
namespace {

constexpr int kLanes = 16;
constexpr int kQueryTile = 6;  // with four vectors 24 sums in registers
constexpr int kGroupVectors = kCacheGroup / kLanes;
constexpr int kTilePairs = kWordTile / 2;

// One group of columns of a tile. Interleaving works in quarters of registers: of 32 columns the
// first vector has 0 to 3, 8 to 11, ..., the second one the others.
struct alignas(64) ValuePanel {
  int16_t pairs[kTilePairs][kGroupVectors][2 * kLanes];

  void Fill(const WordValueArgs& args, int group) {
    alignas(64) static constexpr std::byte kNoValue[2 * kCacheGroup] = {};
    for (int j = 0; j < args.num_values; j += 2) {
      const std::byte* row = args.values + j * args.value_bytes + 2 * group * kCacheGroup;
      const std::byte* next = j + 1 < args.num_values ? row + args.value_bytes : kNoValue;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m512i a = LoadInts(row + 64 * half), b = LoadInts(next + 64 * half);
        _mm512_store_si512(pairs[j / 2][2 * half], _mm512_unpacklo_epi16(a, b));
        _mm512_store_si512(pairs[j / 2][2 * half + 1], _mm512_unpackhi_epi16(a, b));
      }
    }
  }
};

// The scales of sixteen groups of columns: lanes are values.
struct alignas(64) GroupScales {
  static constexpr int kGroups = 16;
  float groups[kGroups][kWordTile];

  // Those from group `first` on.
  void Fill(const WordValueArgs& args, int first) {
    const __mmask16 lanes = FirstLanes(NumCacheGroups(args.value_cols) - first);
    const int64_t offset = WordScalesOffset(args.value_cols) + 4 * first;
    for (int j = 0; j < args.num_values; j += kLanes) {
      __m512i rows[kLanes], turned[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const std::byte* row = args.values + (j + i) * args.value_bytes + offset;
        const __mmask16 seen = j + i < args.num_values ? lanes : __mmask16{0};
        rows[i] = _mm512_maskz_loadu_epi32(seen, row);
      }
      Transpose(rows, turned);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) _mm512_store_si512(groups[i] + j, turned[i]);
    }
    for (int j = RoundUpTo(args.num_values, kLanes); j < kWordTile; j += kLanes) {
      for (auto& group : groups) _mm512_store_ps(group + j, _mm512_setzero_ps());
    }
  }
};

// What a group of columns of the first `limit` values is rounded with: scales over the largest of
// them, times the largest word.
struct alignas(64) ValueScales {
  float shares[kWordTile];
  float largest = 0.0f;

  void Fill(const float* scales, int limit) {
    __m512 vectors[kWordTile / kLanes];
    __m512i bits = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int v = 0; v < kWordTile / kLanes; ++v) {
      vectors[v] = _mm512_maskz_load_ps(FirstLanes(limit - v * kLanes), scales + v * kLanes);
      bits = _mm512_max_epi32(bits, MagnitudeBits(vectors[v]));
    }
    largest = LargestOfBits(bits);
    const __m512 factor = _mm512_set1_ps(FactorOf(largest, kLargestFactorWord));
#pragma GCC unroll 4
    for (int v = 0; v < kWordTile / kLanes; ++v) {
      _mm512_store_ps(shares + v * kLanes, _mm512_mul_ps(vectors[v], factor));
    }
  }
};

// Weights of the values of a tile over the largest of each query; then, for one group of columns,
// the words that the values are multiplied with.
struct alignas(64) TileFactors {
  float weights[kMaxWordQueries][kWordTile];
  int16_t words[kMaxWordQueries][kWordTile];
  float largest[kMaxWordQueries];
  float scales[kMaxWordQueries];

  void Fill(const WordValueArgs& args) {
    for (int q = 0; q < args.num_queries; ++q) {
      const float* from = args.weights + q * args.weight_stride;
      __m512 vectors[kWordTile / kLanes];
      __m512i bits = _mm512_setzero_si512();
#pragma GCC unroll 4
      for (int v = 0; v < kWordTile / kLanes; ++v) {
        const __mmask16 lanes = FirstLanes(args.limits[q] - v * kLanes);
        vectors[v] = _mm512_maskz_loadu_ps(lanes, from + v * kLanes);
        bits = _mm512_max_epi32(bits, MagnitudeBits(vectors[v]));
      }
      largest[q] = LargestOfBits(bits);
      const __m512 factor = _mm512_set1_ps(FactorOf(largest[q], 1));
#pragma GCC unroll 4
      for (int v = 0; v < kWordTile / kLanes; ++v) {
        _mm512_store_ps(weights[q] + v * kLanes, _mm512_mul_ps(vectors[v], factor));
      }
    }
  }

  // The scales of a query that sees less than the tile are its own: what lies behind is not seen.
  void Round(const WordValueArgs& args, const float* group_scales) {
    ValueScales all, own;
    all.Fill(group_scales, args.num_values);
    for (int q = 0; q < args.num_queries; ++q) {
      if (args.limits[q] == args.num_values) {
        RoundQuery(q, all);
      } else {
        own.Fill(group_scales, args.limits[q]);
        RoundQuery(q, own);
      }
    }
  }

  HADAL_INLINE void RoundQuery(int q, const ValueScales& value_scales) {
#pragma GCC unroll 4
    for (int j = 0; j < kWordTile; j += kLanes) {
      StoreWords(
          _mm512_mul_ps(_mm512_load_ps(weights[q] + j), _mm512_load_ps(value_scales.shares + j)),
          words[q] + j);
    }
    scales[q] = largest[q] * (value_scales.largest * (1.0f / kLargestFactorWord));
  }
};

// out of kRows queries and the columns of a group += a tile of values.
template <int kRows>
[[gnu::noinline]] void AddValues(const ValuePanel& panel, int num_pairs, const int16_t* factors,
                                 const float* scales, float* out, int64_t out_stride,
                                 int num_cols) {
  __m512i sums[kRows][kGroupVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kGroupVectors; ++v) sums[r][v] = _mm512_setzero_si512();
  }
  // Not unrolled: with what is left over treated apart, sums would go to memory.
#pragma GCC unroll 1
  for (int64_t pair = 0; pair < num_pairs; ++pair) {
    __m512i values[kGroupVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kGroupVectors; ++v) values[v] = _mm512_load_si512(panel.pairs[pair][v]);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i words = BroadcastWord(factors + r * kWordTile + 2 * pair);
#pragma GCC unroll 4
      for (int v = 0; v < kGroupVectors; ++v) AddWordProducts(values[v], words, &sums[r][v]);
    }
  }
  const __m512i order[2] = {
      _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23),
      _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31)};
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 scale = _mm512_set1_ps(scales[r]);
#pragma GCC unroll 4
    for (int v = 0; v < kGroupVectors; ++v) {
      const __m512i sum =
          _mm512_permutex2var_epi32(sums[r][v / 2 * 2], order[v % 2], sums[r][v / 2 * 2 + 1]);
      const __mmask16 lanes = FirstLanes(num_cols - v * kLanes);
      float* at = out + r * out_stride + v * kLanes;
      const __m512 before = _mm512_maskz_loadu_ps(lanes, at);
      _mm512_mask_storeu_ps(at, lanes, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, before));
    }
  }
}

void WordValues(const WordValueArgs& args) {
  ValuePanel panel;
  TileFactors factors;
  GroupScales scales;
  const int num_pairs = (args.num_values + 1) / 2;
  factors.Fill(args);
  for (int group = 0; group * kCacheGroup < args.dim; ++group) {
    if (group % GroupScales::kGroups == 0) scales.Fill(args, group);
    panel.Fill(args, group);
    factors.Round(args, scales.groups[group % GroupScales::kGroups]);
    const int col = group * kCacheGroup;
    ForRowTiles<kQueryTile>(args.num_queries, [&](auto rows, int q) {
      AddValues<rows.kCount>(panel, num_pairs, factors.words[q], factors.scales + q,
                             args.out + q * args.out_stride + col, args.out_stride, args.dim - col);
    });
  }
}

}  // namespace

void AddWordValues(KernelTable* table) { table->word_values = WordValues; }

}  // namespace hadal::avx512
