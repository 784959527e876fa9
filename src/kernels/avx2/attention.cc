// Scores and weighted values of attention, as small matrix products: many queries (the heads that
// share a latent, the tokens of a prompt) meet the same keys.
#include "kernels/avx2/parts.h"
#include "kernels/avx2/tile.h"

namespace hadal::avx2 {
namespace {

struct KeyRows {
  const float* const* keys;

  void Get(int key, int num, int col, int, const float** pointers) const {
    for (int i = 0; i < num; ++i) pointers[i] = keys[key + i] + col;
  }
};

void AttentionScores(const ScoreArgs& args) {
  KeyRows source{args.keys};
  TiledProduct(Rows{args.queries, args.query_stride, args.num_queries}, args.dim, 0, args.num_keys,
               &source, AssignScaled{args.scale}, args.scores, args.score_stride);
}

// Values at a time: for so many, the part of a value that a tile reads stays in the first cache
// while all queries pass.
constexpr int kValueSpan = 64;

// out[q, 0..8 kVecs) += sum over j in [first, last) of weights[q, j] * values[j, 0..8 kVecs).
template <int kQueries, int kVecs>
inline void AddValues(const float* weights, int64_t weight_stride, const float* const* values,
                      int64_t col, int first, int last, float* out, int64_t out_stride) {
  Vec acc[kQueries][kVecs];
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) acc[q][v] = _mm256_loadu_ps(out + q * out_stride + v * 8);
  }
  for (int j = first; j < last; ++j) {
    Vec value[kVecs];
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) value[v] = _mm256_loadu_ps(values[j] + col + v * 8);
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
      const Vec weight = Set(weights[q * weight_stride + j]);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) acc[q][v] = MulAdd(weight, value[v], acc[q][v]);
    }
  }
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) _mm256_storeu_ps(out + q * out_stride + v * 8, acc[q][v]);
  }
}

// The last columns, fewer than eight.
inline void AddValuesTail(const float* weights, const float* const* values, int64_t col, int count,
                          int first, int last, float* out) {
  Vec acc = Load(out, count);
  for (int j = first; j < last; ++j) {
    acc = MulAdd(Set(weights[j]), Load(values[j] + col, count), acc);
  }
  Store(out, acc, count);
}

struct ValueSpan {
  int first, last;  // of the values
  int col, count;   // of the columns
};

// kQueries queries over one span of values and kVecs * 8 columns. Each query ends at its own limit;
// up to the smallest they go together.
template <int kQueries, int kVecs>
inline void AddSpan(const ValueArgs& args, int q, const ValueSpan& span) {
  int together = span.last;
  for (int i = 0; i < kQueries; ++i) {
    if (args.limits[q + i] < together) together = args.limits[q + i];
  }
  if (together < span.first) together = span.first;
  const float* weights = args.weights + q * args.weight_stride;
  float* out = args.out + q * args.out_stride + span.col;
  AddValues<kQueries, kVecs>(weights, args.weight_stride, args.values, span.col, span.first,
                             together, out, args.out_stride);
  for (int i = 0; i < kQueries; ++i) {
    const int last = args.limits[q + i] < span.last ? args.limits[q + i] : span.last;
    if (last <= together) continue;
    AddValues<1, kVecs>(weights + i * args.weight_stride, 0, args.values, span.col, together, last,
                        out + i * args.out_stride, 0);
  }
}

template <int kVecs>
inline void AddSpanAllQueries(const ValueArgs& args, const ValueSpan& span) {
  int q = 0;
  for (; q + 6 <= args.num_queries; q += 6) AddSpan<6, kVecs>(args, q, span);
  for (; q + 2 <= args.num_queries; q += 2) AddSpan<2, kVecs>(args, q, span);
  for (; q < args.num_queries; ++q) AddSpan<1, kVecs>(args, q, span);
}

void AttentionValues(const ValueArgs& args) {
  for (int first = 0; first < args.num_values; first += kValueSpan) {
    const int rest = args.num_values - first;
    const int last = first + (rest < kValueSpan ? rest : kValueSpan);
    int col = 0;
    for (; col + 16 <= args.dim; col += 16) {
      AddSpanAllQueries<2>(args, ValueSpan{first, last, col, 16});
    }
    for (; col + 8 <= args.dim; col += 8) {
      AddSpanAllQueries<1>(args, ValueSpan{first, last, col, 8});
    }
    if (col == args.dim) continue;
    for (int q = 0; q < args.num_queries; ++q) {
      const int limit = args.limits[q] < last ? args.limits[q] : last;
      AddValuesTail(args.weights + q * args.weight_stride, args.values, col, args.dim - col, first,
                    limit, args.out + q * args.out_stride + col);
    }
  }
}

}  // namespace

void AddAttention(KernelTable* table) {
  table->attention_scores = AttentionScores;
  table->attention_values = AttentionValues;
}

}  // namespace hadal::avx2
