#include "backend/cpu/attention_span.h"

#include <limits>

namespace hadal {

namespace {

// Rows of words, row_bytes apart, and their columns.
struct WordTile {
  const std::byte* rows;
  int64_t row_bytes;
  int cols;
};

// Asks for memory that is needed soon.
void Fetch(const std::byte* begin, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(begin + at, /*write=*/0, 2);
}

// Rows [first, first + count) of the `num_seen`, as words. The rows of the next tile are asked for
// meanwhile: they lie in blocks anywhere, and a long context is in no cache.
WordTile LoadCacheTile(const KernelTable& kernels, const WordSource& words, int first, int count,
                       int num_seen) {
  const WordTile tile = {words.tile, WordRowBytes(words.cache_cols), words.cache_cols};
  const int64_t cache_row_bytes = CacheRowBytes(words.type, words.cache_cols);
  for (int i = 0; i < count; ++i) {
    if (first + kWordTile + i < num_seen) {
      Fetch(words.cache_rows[first + kWordTile + i], cache_row_bytes);
    }
    kernels.load_cache_words[static_cast<size_t>(words.type)](
        words.cache_rows[first + i], words.cache_cols, words.tile + i * tile.row_bytes);
  }
  return tile;
}

// Rows that were made before, from row `first` on.
WordTile TileOf(const std::byte* rows, int cols, int first) {
  return {rows + first * WordRowBytes(cols), WordRowBytes(cols), cols};
}

// Softmax as it goes along: a tile brings its scores, and what was summed before is scaled to the
// largest score of all.
class RunningSpan {
 public:
  RunningSpan(const KernelTable& kernels, const SpanArgs& args) : kernels_(kernels), args_(args) {
    for (int q = 0; q < args.num_queries; ++q) {
      args.max[q] = -std::numeric_limits<float>::infinity();
      args.sum[q] = 0.0f;
      std::fill_n(args.out + q * args.out_stride, args.value_dim, 0.0f);
    }
  }

  // Turns `count` scores of query q into weights.
  void AddScores(int q, float* scores, int count) {
    if (count == 0) return;
    float& max = args_.max[q];
    float& sum = args_.sum[q];
    const float tile_max = kernels_.max(scores, count);
    if (!(tile_max <= max)) {  // NaN goes in and stays
      if (sum != 0.0f) {
        const float factor = std::exp(max - tile_max);
        kernels_.scale(args_.out + q * args_.out_stride, factor, args_.value_dim);
        sum *= factor;
      }
      max = tile_max;
    }
    sum += kernels_.exp_and_sum(scores, count, max);
  }

 private:
  const KernelTable& kernels_;
  const SpanArgs& args_;
};

void AttendWords(const KernelTable& kernels, const SpanArgs& args, int num_seen) {
  const WordSource& words = args.words;
  const int64_t query_bytes = WordRowBytes(args.key_dim);
  for (int q = 0; q < args.num_queries; ++q) {
    kernels.round_words(args.queries + q * args.query_stride, args.key_dim, kLargestFactorWord,
                        words.queries + q * query_bytes);
  }
  RunningSpan running(kernels, args);
  for (int first = 0; first < num_seen; first += kWordTile) {
    const int count = std::min(kWordTile, num_seen - first);
    const bool is_cached = words.cache_rows != nullptr;
    const WordTile keys = is_cached ? LoadCacheTile(kernels, words, first, count, num_seen)
                                    : TileOf(words.keys, args.key_dim, first);
    const WordTile values = is_cached ? keys : TileOf(words.values, args.value_dim, first);
    kernels.word_scores({.queries = words.queries,
                         .query_bytes = query_bytes,
                         .query_cols = args.key_dim,
                         .num_queries = args.num_queries,
                         .keys = keys.rows,
                         .key_bytes = keys.row_bytes,
                         .num_keys = count,
                         .dim = args.key_dim,
                         .scale = args.scale,
                         .scores = args.scores,
                         .score_stride = args.score_stride});
    int32_t limits[kMaxQueries];
    for (int q = 0; q < args.num_queries; ++q) {
      limits[q] = std::clamp(args.limits[q] - first, 0, count);
      running.AddScores(q, args.scores + q * args.score_stride, limits[q]);
    }
    kernels.word_values({.weights = args.scores,
                         .weight_stride = args.score_stride,
                         .num_queries = args.num_queries,
                         .limits = limits,
                         .values = values.rows,
                         .value_bytes = values.row_bytes,
                         .value_cols = values.cols,
                         .num_values = count,
                         .dim = args.value_dim,
                         .out = args.out,
                         .out_stride = args.out_stride});
  }
}

void AttendFloats(const KernelTable& kernels, const SpanArgs& args, int num_seen) {
  if (num_seen > 0) {
    kernels.attention_scores({.queries = args.queries,
                              .query_stride = args.query_stride,
                              .num_queries = args.num_queries,
                              .keys = args.keys,
                              .num_keys = num_seen,
                              .dim = args.key_dim,
                              .scale = args.scale,
                              .scores = args.scores,
                              .score_stride = args.score_stride});
  }
  for (int q = 0; q < args.num_queries; ++q) {
    std::fill_n(args.out + q * args.out_stride, args.value_dim, 0.0f);
    if (args.limits[q] == 0) {
      args.max[q] = -std::numeric_limits<float>::infinity();
      args.sum[q] = 0.0f;
      continue;
    }
    float* row = args.scores + q * args.score_stride;
    args.max[q] = kernels.max(row, args.limits[q]);
    args.sum[q] = kernels.exp_and_sum(row, args.limits[q], args.max[q]);
  }
  if (num_seen == 0) return;
  kernels.attention_values({.weights = args.scores,
                            .weight_stride = args.score_stride,
                            .num_queries = args.num_queries,
                            .limits = args.limits,
                            .values = args.values,
                            .num_values = num_seen,
                            .dim = args.value_dim,
                            .out = args.out,
                            .out_stride = args.out_stride});
}

}  // namespace

void AttendSpan(const KernelTable& kernels, const SpanArgs& args) {
  const int num_seen = *std::max_element(args.limits, args.limits + args.num_queries);
  const bool has_words = args.words.queries != nullptr;
  (has_words ? AttendWords : AttendFloats)(kernels, args, num_seen);
}

void MergeSpan(const KernelTable& kernels, float span_max, float span_sum, const float* span_out,
               int dim, float* max, float* sum, float* out) {
  if (span_sum == 0.0f) return;  // saw nothing
  if (*sum == 0.0f) {            // the first span that saw something
    *max = span_max;
    *sum = span_sum;
    std::copy_n(span_out, dim, out);
    return;
  }
  const float merged_max = std::max(*max, span_max);
  const float factor = std::exp(*max - merged_max);
  const float span_factor = std::exp(span_max - merged_max);
  kernels.scale(out, factor, dim);
  kernels.add_scaled(span_out, span_factor, dim, out);
  *sum = *sum * factor + span_sum * span_factor;
  *max = merged_max;
}

}  // namespace hadal
