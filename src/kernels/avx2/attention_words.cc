// Scores and weighted values on rows of words: products of pairs of words with sums of ints. For
// scores, queries are turned once for all keys; for values, what a tile holds of one group of
// columns is brought into the order of the products once, in the first cache, for all queries.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/vec.h"
#include "kernels/avx2/words.h"

namespace hadal::avx2 {
namespace {

constexpr int kRowTile = 4;  // of keys, or of queries: eight sums in registers
constexpr int kGroupPairs = kCacheGroup / 2;
constexpr int kTilePairs = kWordTile / 2;

template <int kRows>
struct RowCount {
  static constexpr int kCount = kRows;
};
// body(RowCount, first) for all rows, kRowTile at a time.
template <class Body>
inline void ForRowTiles(int num_rows, const Body& body) {
  int r = 0;
  for (; r + kRowTile <= num_rows; r += kRowTile) body(RowCount<kRowTile>{}, r);
  switch (num_rows - r) {
    case 3:
      return body(RowCount<3>{}, r);
    case 2:
      return body(RowCount<2>{}, r);
    case 1:
      return body(RowCount<1>{}, r);
    default:
      return;
  }
}

inline __m256i LoadInts(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }
inline void StoreInts(void* p, __m256i a) { _mm256_store_si256(static_cast<__m256i*>(p), a); }

// A pair of words in every lane.
inline __m256i BroadcastPair(const std::byte* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

// sum + a * b here and now: left alone, the compiler forms all products first and spills them. The
// addition as an instruction, so that the sum stays in its register.
[[gnu::always_inline]] inline void AddPairs(__m256i a, __m256i b, __m256i* sum) {
  const __m256i products = _mm256_madd_epi16(a, b);
  asm("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(products));
}

inline float ScaleOf(const std::byte* row, int cols, int group) {
  float scale;
  __builtin_memcpy(&scale, row + WordScalesOffset(cols) + 4 * group, sizeof(scale));
  return scale;
}

// to[i][8 lanes] = int i of each of eight rows.
inline void Transpose(const __m256i (&rows)[8], int32_t* to, int to_stride) {
  __m256i two[8], four[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    two[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
    two[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    four[i] = _mm256_unpacklo_epi64(two[i], two[i + 2]);
    four[i + 1] = _mm256_unpackhi_epi64(two[i], two[i + 2]);
    four[i + 2] = _mm256_unpacklo_epi64(two[i + 1], two[i + 3]);
    four[i + 3] = _mm256_unpackhi_epi64(two[i + 1], two[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    StoreInts(to + i * to_stride, _mm256_permute2x128_si256(four[i], four[i + 4], 0x20));
    StoreInts(to + (i + 4) * to_stride, _mm256_permute2x128_si256(four[i], four[i + 4], 0x31));
  }
}

// One group of columns of sixteen queries, filled up with nothing: lanes are queries.
struct alignas(32) QueryPanel {
  static constexpr int kQueries = 16;
  int32_t pairs[kGroupPairs][kQueries];
  float scales[kQueries];

  // Queries from `first_query` on.
  void Fill(const WordPanelArgs& args, int first_query, int group) {
    alignas(32) static constexpr std::byte kNoQuery[2 * kCacheGroup] = {};
    for (int first = 0; first < kQueries; first += 8) {
      const std::byte* queries[8];
      for (int i = 0; i < 8; ++i) {
        const int q = first_query + first + i;
        const bool is_query = q < args.num_rows;
        const std::byte* row = args.rows + q * args.row_bytes;
        queries[i] = is_query ? row + 2 * group * kCacheGroup : kNoQuery;
        scales[first + i] = is_query ? ScaleOf(row, args.cols, group) * args.scale : 0.0f;
      }
      for (int v = 0; v < kGroupPairs / 8; ++v) {
        __m256i rows[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
          rows[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(queries[i] + 32 * v));
        }
        Transpose(rows, &pairs[8 * v][first], kQueries);
      }
    }
  }
};
static_assert(sizeof(QueryPanel) * (kMaxWordQueries / QueryPanel::kQueries) ==
              WordPanelBytes(kCacheGroup));

// Panels follow each other by sixteens of queries, in those by groups.
void TurnWords(const WordPanelArgs& args) {
  auto* panel = reinterpret_cast<QueryPanel*>(args.panel);
  for (int q = 0; q < args.num_rows; q += QueryPanel::kQueries) {
    for (int group = 0; group < NumCacheGroups(args.dim); ++group) panel++->Fill(args, q, group);
  }
}

// Scores so far of sixteen queries with all keys of a tile.
struct alignas(32) TileScores {
  float keys[kWordTile][QueryPanel::kQueries];
};

// scores of sixteen queries with kKeys keys += one group.
template <int kKeys>
[[gnu::noinline]] void AddScores(const QueryPanel& panel, const std::byte* keys, int64_t key_bytes,
                                 int64_t scale_offset, float (*scores)[QueryPanel::kQueries]) {
  __m256i sums[kKeys][2];
  const std::byte* key[kKeys];
#pragma GCC unroll 4
  for (int j = 0; j < kKeys; ++j) {
    key[j] = keys + j * key_bytes;
    sums[j][0] = sums[j][1] = _mm256_setzero_si256();
  }
  for (int first = 0; first < kGroupPairs; first += 8) {
#pragma GCC unroll 8
    for (int pair = first; pair < first + 8; ++pair) {
      const __m256i low = LoadInts(&panel.pairs[pair][0]), high = LoadInts(&panel.pairs[pair][8]);
#pragma GCC unroll 4
      for (int j = 0; j < kKeys; ++j) {
        const __m256i words = BroadcastPair(key[j] + 4 * pair);
        AddPairs(low, words, &sums[j][0]);
        AddPairs(high, words, &sums[j][1]);
      }
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < kKeys; ++j) {
    float key_scale;
    __builtin_memcpy(&key_scale, key[j] + scale_offset, sizeof(key_scale));
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      float* at = scores[j] + 8 * half;
      const Vec scale = Mul(Set(key_scale), _mm256_load_ps(panel.scales + 8 * half));
      _mm256_store_ps(at, MulAdd(_mm256_cvtepi32_ps(sums[j][half]), scale, _mm256_load_ps(at)));
    }
  }
}

#include "kernels/common/fetch_keys-inl.h"

// Eight queries with eight keys at a time to where the rows are queries.
void WriteQueryRows(const WordScoreArgs& args, int first_query, const TileScores& scores) {
  for (int q = 0; q < QueryPanel::kQueries && first_query + q < args.num_queries; q += 8) {
    for (int j = 0; j < args.num_keys; j += 8) {
      __m256i keys[8];
      alignas(32) int32_t turned[8][8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) keys[i] = LoadInts(scores.keys[j + i] + q);
      Transpose(keys, turned[0], 8);
      for (int i = 0; i < 8 && first_query + q + i < args.num_queries; ++i) {
        Store(args.scores + (first_query + q + i) * args.score_stride + j,
              _mm256_castsi256_ps(LoadInts(turned[i])), args.num_keys - j);
      }
    }
  }
}

void WriteKeyRows(const WordScoreArgs& args, int first_query, const TileScores& scores) {
  for (int j = 0; j < args.num_keys; ++j) {
    float* out = args.scores + j * args.score_stride + first_query;
    for (int q = 0; q < QueryPanel::kQueries && first_query + q < args.num_queries; q += 8) {
      Store(out + q, _mm256_load_ps(scores.keys[j] + q), args.num_queries - first_query - q);
    }
  }
}

void WordScores(const WordScoreArgs& args) {
  TileScores scores;
  const auto* panel = reinterpret_cast<const QueryPanel*>(args.panel);
  for (int q = 0; q < args.num_queries; q += QueryPanel::kQueries) {
    for (int j = 0; j < args.num_keys; ++j) {
      _mm256_store_ps(scores.keys[j], Set(0.0f));
      _mm256_store_ps(scores.keys[j] + 8, Set(0.0f));
    }
    for (int group = 0; group < NumCacheGroups(args.dim); ++group, ++panel) {
      const std::byte* keys = args.keys + 2 * group * kCacheGroup;
      const int64_t scale_offset =
          WordScalesOffset(args.key_cols) + 4 * group - 2 * group * kCacheGroup;
      ForRowTiles(args.num_keys, [&](auto rows, int j) {
        if (q == 0) FetchNextKeys(args, j, rows.kCount, group);
        AddScores<rows.kCount>(*panel, keys + j * args.key_bytes, args.key_bytes, scale_offset,
                               scores.keys + j);
      });
    }
    args.has_key_rows ? WriteKeyRows(args, q, scores) : WriteQueryRows(args, q, scores);
  }
}

// One group of columns of a tile of values: pairs of values, sixteen columns together. Interleaving
// works in halves of registers, so the columns of a vector are 0 to 3 and 8 to 11, then 4 to 7 and
// 12 to 15.
struct alignas(32) ValuePanel {
  static constexpr int kCols = 16;
  int16_t pairs[kCacheGroup / kCols][kTilePairs][2 * kCols];

  void Fill(const WordValueArgs& args, int group) {
    alignas(32) static constexpr std::byte kNoValue[2 * kCacheGroup] = {};
    for (int j = 0; j < args.num_values; j += 2) {
      const std::byte* row = args.values + j * args.value_bytes + 2 * group * kCacheGroup;
      const std::byte* next = j + 1 < args.num_values ? row + args.value_bytes : kNoValue;
#pragma GCC unroll 4
      for (int v = 0; v < kCacheGroup / kCols; ++v) {
        const auto load = [v](const std::byte* p) {
          return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * v));
        };
        const __m256i a = load(row), b = load(next);
        StoreInts(&pairs[v][j / 2][0], _mm256_unpacklo_epi16(a, b));
        StoreInts(&pairs[v][j / 2][kCols], _mm256_unpackhi_epi16(a, b));
      }
    }
  }
};

// What a group of columns of the first `limit` values is rounded with: scales over the largest of
// them, times the largest word.
struct alignas(32) ValueScales {
  float shares[kWordTile];
  float largest = 0.0f;

  void Fill(const WordValueArgs& args, int group, int limit) {
    Vec magnitudes = Set(0.0f);
    for (int j = 0; j < limit; j += 8) {
      for (int i = j; i < j + 8; ++i) {
        shares[i] =
            i < limit ? ScaleOf(args.values + i * args.value_bytes, args.value_cols, group) : 0.0f;
      }
      magnitudes = MaxOrNan(magnitudes, _mm256_load_ps(shares + j));
    }
    largest = LargestLane(magnitudes);
    const Vec factor = Set(FactorOf(largest, kLargestFactorWord));
    for (int j = 0; j < limit; j += 8) {
      _mm256_store_ps(shares + j, Mul(_mm256_load_ps(shares + j), factor));
    }
  }
};

// Weights of the values of a tile over the largest of each query; then, for one group of columns,
// the words that the values are multiplied with.
struct alignas(32) TileFactors {
  float weights[kMaxWordQueries][kWordTile];
  int16_t words[kMaxWordQueries][kWordTile];
  float largest[kMaxWordQueries];
  float scales[kMaxWordQueries];

  void Fill(const WordValueArgs& args) {
    for (int q = 0; q < args.num_queries; ++q) {
      const float* from = args.weights + q * args.weight_stride;
      const int limit = args.limits[q];
      Vec magnitudes = Set(0.0f);
      for (int j = 0; j < kWordTile; j += 8) {
        const Vec weight = j < limit ? Load(from + j, limit - j) : Set(0.0f);
        magnitudes = MaxOrNan(magnitudes, weight);
        _mm256_store_ps(weights[q] + j, weight);
      }
      largest[q] = LargestLane(magnitudes);
      const Vec factor = Set(FactorOf(largest[q], 1));
      for (int j = 0; j < kWordTile; j += 8) {
        _mm256_store_ps(weights[q] + j, Mul(_mm256_load_ps(weights[q] + j), factor));
      }
    }
  }

  // The scales of a query that sees less than the tile are its own: what lies behind is not seen.
  void Round(const WordValueArgs& args, int group) {
    ValueScales all, own;
    all.Fill(args, group, args.num_values);
    for (int q = 0; q < args.num_queries; ++q) {
      if (args.limits[q] == args.num_values) {
        RoundQuery(q, all, args.num_values);
      } else {
        own.Fill(args, group, args.limits[q]);
        RoundQuery(q, own, args.limits[q]);
      }
    }
  }

  void RoundQuery(int q, const ValueScales& value_scales, int limit) {
    for (int j = 0; j < kWordTile; j += 16) {
      __m256i words_of[2];
      for (int half = 0; half < 2; ++half) {
        const int at = j + 8 * half;
        const Vec factors = at < limit ? Mul(_mm256_load_ps(weights[q] + at),
                                             _mm256_load_ps(value_scales.shares + at))
                                       : Set(0.0f);
        words_of[half] = _mm256_cvtps_epi32(factors);
      }
      StoreInts(words[q] + j, PackWords(words_of[0], words_of[1]));
    }
    scales[q] = largest[q] * (value_scales.largest * (1.0f / kLargestFactorWord));
  }
};

// out of kRows queries and sixteen columns += a tile of values.
template <int kRows>
[[gnu::noinline]] void AddValues(const int16_t (&pairs)[kTilePairs][2 * ValuePanel::kCols],
                                 int num_pairs, const int16_t* factors, const float* scales,
                                 float* out, int64_t out_stride, int num_cols) {
  __m256i sums[kRows][2];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
  const auto add = [&](int pair) __attribute__((always_inline)) {
    const __m256i low = LoadInts(&pairs[pair][0]), high = LoadInts(&pairs[pair][ValuePanel::kCols]);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m256i words =
          BroadcastPair(reinterpret_cast<const std::byte*>(factors + r * kWordTile + 2 * pair));
      AddPairs(low, words, &sums[r][0]);
      AddPairs(high, words, &sums[r][1]);
    }
  };
  int pair = 0;
  for (; pair + 4 <= num_pairs; pair += 4) {
    add(pair);
    add(pair + 1);
    add(pair + 2);
    add(pair + 3);
  }
  for (; pair < num_pairs; ++pair) add(pair);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const Vec scale = Set(scales[r]);
    const __m256i halves[2] = {_mm256_permute2x128_si256(sums[r][0], sums[r][1], 0x20),
                               _mm256_permute2x128_si256(sums[r][0], sums[r][1], 0x31)};
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int count = num_cols - 8 * half;
      if (count <= 0) break;
      float* at = out + r * out_stride + 8 * half;
      Store(at, MulAdd(_mm256_cvtepi32_ps(halves[half]), scale, Load(at, count)), count);
    }
  }
}

void WordValues(const WordValueArgs& args) {
  ValuePanel panel;
  TileFactors factors;
  const int num_pairs = (args.num_values + 1) / 2;
  factors.Fill(args);
  for (int group = 0; group * kCacheGroup < args.dim; ++group) {
    panel.Fill(args, group);
    factors.Round(args, group);
    for (int v = 0; v < kCacheGroup / ValuePanel::kCols; ++v) {
      const int col = group * kCacheGroup + v * ValuePanel::kCols;
      if (col >= args.dim) break;
      ForRowTiles(args.num_queries, [&](auto rows, int q) {
        AddValues<rows.kCount>(panel.pairs[v], num_pairs, factors.words[q], factors.scales + q,
                               args.out + q * args.out_stride + col, args.out_stride,
                               args.dim - col);
      });
    }
  }
}

}  // namespace

void AddAttentionWords(KernelTable* table) {
  table->turn_words = TurnWords;
  table->word_scores = WordScores;
  table->word_values = WordValues;
}

}  // namespace hadal::avx2
