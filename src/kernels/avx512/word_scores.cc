// Scores on rows of words. Queries are turned once for all keys, sixteen together; the keys are
// taken as they lie, a few words of one at a time for all lanes.
#include "kernels/avx512/parts.h"
#include "kernels/avx512/words.h"

namespace hadal::avx512 {
namespace {

// One group of columns of all queries, filled up to kSixteens times sixteen with nothing. Lanes are
// queries with a pair of words each. For sixteen queries alone, a key would have to be read for
// each product: there every query takes two lanes, with two pairs that follow each other.
template <int kSixteens>
struct alignas(64) QueryPanel {
  static constexpr int kQueries = 16 * kSixteens;
  static constexpr int kWords = kSixteens == 1 ? 4 : 2;  // of a key, for a product
  static constexpr int kSteps = kCacheGroup / kWords;
  static constexpr int kVectors = kQueries * kWords / 32;
  int32_t words[kSteps][kVectors][16];
  float scales[kQueries];

  void Fill(const WordPanelArgs& args, int group) {
    alignas(64) static constexpr std::byte kNoQuery[2 * kCacheGroup] = {};
    constexpr int kVectorQueries = kQueries / kVectors;
    for (int first = 0; first < kQueries; first += kVectorQueries) {
      const std::byte* queries[kVectorQueries];
      for (int i = 0; i < kVectorQueries; ++i) {
        const int q = first + i;
        const bool is_query = q < args.num_rows;
        const std::byte* row = args.rows + q * args.row_bytes;
        queries[i] = is_query ? row + 2 * group * kCacheGroup : kNoQuery;
        scales[q] = is_query ? ScaleOf(row, args.cols, group) * args.scale : 0.0f;
      }
      for (int half = 0; half < 2; ++half) {
        __m512i rows[kVectorQueries], turned[kVectorQueries];
#pragma GCC unroll 16
        for (int i = 0; i < kVectorQueries; ++i) rows[i] = LoadInts(queries[i] + 64 * half);
        if constexpr (kWords == 4) {
          TransposeLongs(rows, turned);
        } else {
          Transpose(rows, turned);
        }
#pragma GCC unroll 16
        for (int i = 0; i < kVectorQueries; ++i) {
          _mm512_store_si512(words[half * kSteps / 2 + i][first / kVectorQueries], turned[i]);
        }
      }
    }
  }
};
static_assert(sizeof(QueryPanel<1>) * 4 == WordPanelBytes(kCacheGroup));
static_assert(sizeof(QueryPanel<4>) == WordPanelBytes(kCacheGroup));

// Scores so far of all queries with all keys of a tile.
struct alignas(64) TileScores {
  float keys[kWordTile][kMaxWordQueries];
};

// Both halves of what a query has summed, of sixteen queries.
HADAL_INLINE __m512i AddHalves(__m512i low, __m512i high) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_permutex2var_epi32(low, even, high),
                          _mm512_permutex2var_epi32(low, odd, high));
}

// scores of kKeys keys with all queries += one group.
template <int kKeys, int kSixteens>
[[gnu::noinline]] void AddScores(const QueryPanel<kSixteens>& panel, const std::byte* keys,
                                 int64_t key_bytes, int64_t scale_offset,
                                 float (*scores)[kMaxWordQueries]) {
  using Panel = QueryPanel<kSixteens>;
  __m512i sums[kKeys][Panel::kVectors];
  const std::byte* key[kKeys];
#pragma GCC unroll 8
  for (int j = 0; j < kKeys; ++j) {
    key[j] = keys + j * key_bytes;
#pragma GCC unroll 8
    for (int v = 0; v < Panel::kVectors; ++v) sums[j][v] = _mm512_setzero_si512();
  }
  for (int64_t first = 0; first < Panel::kSteps; first += 8) {
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      __m512i words[kKeys];
#pragma GCC unroll 8
      for (int j = 0; j < kKeys; ++j) {
        const std::byte* at = key[j] + 2 * Panel::kWords * (first + step);
        if constexpr (Panel::kWords == 4) {
          words[j] = BroadcastLong(at);
        } else {
          words[j] = BroadcastWord(at);
        }
      }
#pragma GCC unroll 8
      for (int v = 0; v < Panel::kVectors; ++v) {
        const __m512i queries = _mm512_load_si512(panel.words[first + step][v]);
#pragma GCC unroll 8
        for (int j = 0; j < kKeys; ++j) AddWordProducts(queries, words[j], &sums[j][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kKeys; ++j) {
    const __m512 key_scale = BroadcastFloat(key[j] + scale_offset);
#pragma GCC unroll 4
    for (int v = 0; v < kSixteens; ++v) {
      float* at = scores[j] + 16 * v;
      __m512i sum;
      if constexpr (Panel::kWords == 4) {
        sum = AddHalves(sums[j][2 * v], sums[j][2 * v + 1]);
      } else {
        sum = sums[j][v];
      }
      const __m512 scale = _mm512_mul_ps(key_scale, _mm512_load_ps(panel.scales + 16 * v));
      _mm512_store_ps(at, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, _mm512_load_ps(at)));
    }
  }
}

#include "kernels/common/fetch_keys-inl.h"

// The group of columns of keys that are multiplied after these, into the nearest cache.
HADAL_INLINE void FetchGroup(const std::byte* keys, int64_t key_bytes, int count) {
  for (int j = 0; j < count; ++j) {
    __builtin_prefetch(keys + j * key_bytes, 0, 3);
    __builtin_prefetch(keys + j * key_bytes + 64, 0, 3);
  }
}

template <int kSixteens>
void AddGroupScores(const WordScoreArgs& args, const QueryPanel<kSixteens>& panel, int group,
                    TileScores* scores) {
  constexpr int kKeys = kSixteens == 1 ? 8 : 4;  // sixteen sums, or fewer
  const std::byte* keys = args.keys + 2 * group * kCacheGroup;
  const int64_t scale_offset =
      WordScalesOffset(args.key_cols) + 4 * group - 2 * group * kCacheGroup;
  ForRowTiles<kKeys>(args.num_keys, [&](auto rows, int j) {
    FetchNextKeys(args, j, rows.kCount, group);
    FetchGroup(keys + (j + rows.kCount) * args.key_bytes, args.key_bytes, rows.kCount);
    AddScores<rows.kCount>(panel, keys + j * args.key_bytes, args.key_bytes, scale_offset,
                           scores->keys + j);
  });
}

// Sixteen queries with sixteen keys at a time to where the rows are queries.
void WriteQueryRows(const WordScoreArgs& args, const TileScores& scores) {
  for (int q = 0; q < args.num_queries; q += 16) {
    for (int j = 0; j < args.num_keys; j += 16) {
      __m512i keys[16], turned[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) keys[i] = _mm512_load_si512(scores.keys[j + i] + q);
      Transpose(keys, turned);
      const __mmask16 lanes = FirstLanes(args.num_keys - j);
      float* out = args.scores + q * args.score_stride + j;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        if (q + i < args.num_queries) {
          _mm512_mask_storeu_epi32(out + i * args.score_stride, lanes, turned[i]);
        }
      }
    }
  }
}

void WriteKeyRows(const WordScoreArgs& args, const TileScores& scores) {
  for (int j = 0; j < args.num_keys; ++j) {
    float* out = args.scores + j * args.score_stride;
    for (int q = 0; q < args.num_queries; q += 16) {
      _mm512_mask_storeu_ps(out + q, FirstLanes(args.num_queries - q),
                            _mm512_load_ps(scores.keys[j] + q));
    }
  }
}

// body(RowCount) for as many sixteens as queries fill.
template <class Body>
void WithSixteens(int num_queries, const Body& body) {
  switch ((num_queries + 15) / 16) {
    case 1:
      return body(RowCount<1>{});
    case 2:
      return body(RowCount<2>{});
    case 3:
      return body(RowCount<3>{});
    default:
      return body(RowCount<4>{});
  }
}

void TurnWords(const WordPanelArgs& args) {
  WithSixteens(args.num_rows, [&](auto sixteens) {
    auto* panel = reinterpret_cast<QueryPanel<sixteens.kCount>*>(args.panel);
    for (int group = 0; group < NumCacheGroups(args.dim); ++group) panel[group].Fill(args, group);
  });
}

void WordScores(const WordScoreArgs& args) {
  TileScores scores;
  for (int j = 0; j < args.num_keys; ++j) {
    for (int q = 0; q < args.num_queries; q += 16) {
      _mm512_store_ps(scores.keys[j] + q, _mm512_setzero_ps());
    }
  }
  WithSixteens(args.num_queries, [&](auto sixteens) {
    const auto* panel = reinterpret_cast<const QueryPanel<sixteens.kCount>*>(args.panel);
    for (int group = 0; group < NumCacheGroups(args.dim); ++group) {
      AddGroupScores(args, panel[group], group, &scores);
    }
  });
  args.has_key_rows ? WriteKeyRows(args, scores) : WriteQueryRows(args, scores);
}

}  // namespace

void AddWordScores(KernelTable* table) {
  table->turn_words = TurnWords;
  table->word_scores = WordScores;
}

}  // namespace hadal::avx512
