// Scores on rows of words. Lanes are queries: those of one group of columns are turned once for all
// keys of a tile, and the keys are taken as they lie.
#include "kernels/avx512/parts.h"
#include "kernels/avx512/words.h"

namespace hadal::avx512 {
namespace {

constexpr int kLanes = 16;
constexpr int kMaxVectors = kMaxWordQueries / kLanes;
constexpr int kGroupPairs = kCacheGroup / 2;

// One group of columns of all queries.
struct alignas(64) QueryPanel {
  int32_t pairs[kGroupPairs][kMaxVectors][kLanes];
  float scales[kMaxVectors][kLanes];

  void Fill(const WordScoreArgs& args, int group) {
    alignas(64) static constexpr std::byte kNoQuery[2 * kCacheGroup] = {};
    for (int vector = 0; vector * kLanes < args.num_queries; ++vector) {
      const std::byte* queries[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const int q = vector * kLanes + i;
        const std::byte* row = args.queries + q * args.query_bytes;
        queries[i] = q < args.num_queries ? row + 2 * group * kCacheGroup : kNoQuery;
        scales[vector][i] =
            q < args.num_queries ? ScaleOf(row, args.query_cols, group) * args.scale : 0.0f;
      }
      for (int part = 0; part < kGroupPairs / kLanes; ++part) {
        __m512i rows[kLanes], turned[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) rows[i] = LoadInts(queries[i] + 64 * part);
        Transpose(rows, turned);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) {
          _mm512_store_si512(pairs[part * kLanes + i][vector], turned[i]);
        }
      }
    }
  }
};

// Scores so far of all queries with all keys of a tile.
struct alignas(64) TileScores {
  float keys[kWordTile][kMaxVectors][kLanes];
};

// scores of kKeys keys with kVectors vectors of queries += one group.
template <int kKeys, int kVectors>
[[gnu::noinline]] void AddScores(const QueryPanel& panel, const std::byte* keys, int64_t key_bytes,
                                 int64_t scale_offset, float (*scores)[kMaxVectors][kLanes]) {
  __m512i sums[kKeys][kVectors];
  const std::byte* key[kKeys];
#pragma GCC unroll 8
  for (int j = 0; j < kKeys; ++j) {
    key[j] = keys + j * key_bytes;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[j][v] = _mm512_setzero_si512();
  }
  for (int64_t first = 0; first < kGroupPairs; first += 8) {
#pragma GCC unroll 8
    for (int pair = 0; pair < 8; ++pair) {
      __m512i queries[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        queries[v] = _mm512_load_si512(panel.pairs[first + pair][v]);
      }
#pragma GCC unroll 8
      for (int j = 0; j < kKeys; ++j) {
        const __m512i words = BroadcastWord(key[j] + 4 * (first + pair));
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) AddWordProducts(queries[v], words, &sums[j][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kKeys; ++j) {
    const __m512 key_scale = BroadcastFloat(key[j] + scale_offset);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* at = scores[j][v];
      const __m512 scale = _mm512_mul_ps(key_scale, _mm512_load_ps(panel.scales[v]));
      _mm512_store_ps(at,
                      _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[j][v]), scale, _mm512_load_ps(at)));
    }
  }
}

template <int kVectors>
void AddGroupScores(const WordScoreArgs& args, const QueryPanel& panel, int group,
                    TileScores* scores) {
  constexpr int kKeys = kVectors <= 2 ? 8 : 4;
  const std::byte* keys = args.keys + 2 * group * kCacheGroup;
  const int64_t scale_offset = WordScalesOffset(args.dim) + 4 * group - 2 * group * kCacheGroup;
  int j = 0;
  for (; j + kKeys <= args.num_keys; j += kKeys) {
    AddScores<kKeys, kVectors>(panel, keys + j * args.key_bytes, args.key_bytes, scale_offset,
                               scores->keys + j);
  }
  for (; j < args.num_keys; ++j) {
    AddScores<1, kVectors>(panel, keys + j * args.key_bytes, args.key_bytes, scale_offset,
                           scores->keys + j);
  }
}

// Sixteen queries with sixteen keys at a time to where the rows are queries.
void WriteScores(const WordScoreArgs& args, const TileScores& scores) {
  for (int q = 0; q < args.num_queries; q += kLanes) {
    for (int j = 0; j < args.num_keys; j += kLanes) {
      __m512i keys[kLanes], turned[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        keys[i] = _mm512_load_si512(scores.keys[j + i][q / kLanes]);
      }
      Transpose(keys, turned);
      const __mmask16 lanes = FirstLanes(args.num_keys - j);
      float* out = args.scores + q * args.score_stride + j;
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
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
  const int num_vectors = (args.num_queries + kLanes - 1) / kLanes;
  for (int j = 0; j < kWordTile; ++j) {
    for (int v = 0; v < num_vectors; ++v) _mm512_store_ps(scores.keys[j][v], _mm512_setzero_ps());
  }
  for (int group = 0; group < NumCacheGroups(args.dim); ++group) {
    panel.Fill(args, group);
    switch (num_vectors) {
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
