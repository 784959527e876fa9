// Scores on rows of words. Lanes are queries, each twice, with two pairs of words that follow each
// other: those of one group of columns are turned once for all keys of a tile, and the keys are
// taken as they lie. With one pair for sixteen queries, a key would have to be read for each
// product.
#include "kernels/avx512/parts.h"
#include "kernels/avx512/words.h"

namespace hadal::avx512 {
namespace {

constexpr int kVectorQueries = 8;
constexpr int kMaxVectors = kMaxWordQueries / kVectorQueries;
constexpr int kGroupFours = kCacheGroup / 4;  // of words

// One group of columns of all queries.
struct alignas(64) QueryPanel {
  int64_t fours[kGroupFours][kMaxVectors][kVectorQueries];
  float scales[kMaxWordQueries];

  void Fill(const WordScoreArgs& args, int group) {
    alignas(64) static constexpr std::byte kNoQuery[2 * kCacheGroup] = {};
    // Filled up with nothing to sixteen.
    const int num_queries = RoundUpTo(args.num_queries, 16);
    for (int first = 0; first < num_queries; first += kVectorQueries) {
      const std::byte* queries[kVectorQueries];
      for (int i = 0; i < kVectorQueries; ++i) {
        const int q = first + i;
        const std::byte* row = args.queries + q * args.query_bytes;
        queries[i] = q < args.num_queries ? row + 2 * group * kCacheGroup : kNoQuery;
        scales[q] = q < args.num_queries ? ScaleOf(row, args.query_cols, group) * args.scale : 0.0f;
      }
      for (int part = 0; part < kGroupFours / kVectorQueries; ++part) {
        __m512i rows[kVectorQueries], turned[kVectorQueries];
#pragma GCC unroll 8
        for (int i = 0; i < kVectorQueries; ++i) rows[i] = LoadInts(queries[i] + 64 * part);
        TransposeLongs(rows, turned);
#pragma GCC unroll 8
        for (int i = 0; i < kVectorQueries; ++i) {
          _mm512_store_si512(fours[part * kVectorQueries + i][first / kVectorQueries], turned[i]);
        }
      }
    }
  }
};

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

// scores of kKeys keys with 2 * kSixteens vectors of queries += one group.
template <int kKeys, int kSixteens>
[[gnu::noinline]] void AddScores(const QueryPanel& panel, const std::byte* keys, int64_t key_bytes,
                                 int64_t scale_offset, float (*scores)[kMaxWordQueries]) {
  constexpr int kVectors = 2 * kSixteens;
  __m512i sums[kKeys][kVectors];
  const std::byte* key[kKeys];
#pragma GCC unroll 8
  for (int j = 0; j < kKeys; ++j) {
    key[j] = keys + j * key_bytes;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[j][v] = _mm512_setzero_si512();
  }
  for (int64_t first = 0; first < kGroupFours; first += 8) {
#pragma GCC unroll 8
    for (int four = 0; four < 8; ++four) {
      __m512i words[kKeys];
#pragma GCC unroll 8
      for (int j = 0; j < kKeys; ++j) words[j] = BroadcastLong(key[j] + 8 * (first + four));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const __m512i queries = _mm512_load_si512(panel.fours[first + four][v]);
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
      const __m512 sum = _mm512_cvtepi32_ps(AddHalves(sums[j][2 * v], sums[j][2 * v + 1]));
      const __m512 scale = _mm512_mul_ps(key_scale, _mm512_load_ps(panel.scales + 16 * v));
      _mm512_store_ps(at, _mm512_fmadd_ps(sum, scale, _mm512_load_ps(at)));
    }
  }
}

template <int kSixteens>
void AddGroupScores(const WordScoreArgs& args, const QueryPanel& panel, int group,
                    TileScores* scores) {
  constexpr int kKeys = kSixteens == 1 ? 8 : kSixteens == 2 ? 4 : 2;  // at most sixteen sums
  const std::byte* keys = args.keys + 2 * group * kCacheGroup;
  const int64_t scale_offset = WordScalesOffset(args.dim) + 4 * group - 2 * group * kCacheGroup;
  int j = 0;
  for (; j + kKeys <= args.num_keys; j += kKeys) {
    AddScores<kKeys, kSixteens>(panel, keys + j * args.key_bytes, args.key_bytes, scale_offset,
                                scores->keys + j);
  }
  for (; j < args.num_keys; ++j) {
    AddScores<1, kSixteens>(panel, keys + j * args.key_bytes, args.key_bytes, scale_offset,
                            scores->keys + j);
  }
}

// Sixteen queries with sixteen keys at a time to where the rows are queries.
void WriteScores(const WordScoreArgs& args, const TileScores& scores) {
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

void WordScores(const WordScoreArgs& args) {
  TileScores scores;
  QueryPanel panel;
  const int num_sixteens = (args.num_queries + 15) / 16;
  for (int j = 0; j < kWordTile; ++j) {
    for (int q = 0; q < args.num_queries; q += 16) {
      _mm512_store_ps(scores.keys[j] + q, _mm512_setzero_ps());
    }
  }
  for (int group = 0; group < NumCacheGroups(args.dim); ++group) {
    panel.Fill(args, group);
    switch (num_sixteens) {
      case 1:
        AddGroupScores<1>(args, panel, group, &scores);
        break;
      case 2:
        AddGroupScores<2>(args, panel, group, &scores);
        break;
      case 3:
        AddGroupScores<3>(args, panel, group, &scores);
        break;
      default:
        AddGroupScores<4>(args, panel, group, &scores);
    }
  }
  WriteScores(args, scores);
}

}  // namespace

void AddWordScores(KernelTable* table) { table->word_scores = WordScores; }

}  // namespace hadal::avx512
