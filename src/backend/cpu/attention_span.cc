#include "backend/cpu/attention_span.h"

#include <limits>

namespace hadal {

namespace {

// Asks for memory that is needed soon.
void Fetch(const std::byte* begin, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(begin + at, /*write=*/0, 2);
}

// Rows [first, first + count) as words in the scratch rows. The rows of the next tile are asked for
// meanwhile: they lie in blocks anywhere, and a long context is in no cache.
WordTile LoadTile(const KernelTable& kernels, const CachedRows& cache, int first, int count) {
  const WordTile tile = {cache.scratch, WordRowBytes(cache.cols), cache.cols};
  const int64_t cache_row_bytes = CacheRowBytes(cache.type, cache.cols);
  for (int i = 0; i < count; ++i) {
    const int ahead = first + kWordTile + i;
    if (ahead < cache.num_rows) Fetch(cache.rows[ahead], cache_row_bytes);
    kernels.load_cache_words[static_cast<size_t>(cache.type)](cache.rows[first + i], cache.cols,
                                                              cache.scratch + i * tile.row_bytes);
  }
  return tile;
}

// Rows [first, first + count) lie one after another, as those of a block do.
bool FollowEachOther(const CachedRows& cache, int first, int count, int64_t row_bytes) {
  for (int i = 1; i < count; ++i) {
    if (cache.rows[first + i] != cache.rows[first] + i * row_bytes) return false;
  }
  return true;
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
  // Scores of one tile at a time, close together: rows a power of two apart would share few lines
  // of the nearest cache.
  constexpr int64_t kScoreStride = kWordTile;
  RunningSpan running(kernels, args);
  for (int first = 0; first < num_seen; first += kWordTile) {
    const int count = std::min(kWordTile, num_seen - first);
    const bool is_cached = words.cache.rows != nullptr;
    const WordTile keys = is_cached ? TileOfCache(kernels, words.cache, first, count)
                                    : TileOf(words.keys, args.key_dim, first);
    const WordTile values = is_cached ? keys : TileOf(words.values, args.value_dim, first);
    kernels.word_scores({.panel = words.panel,
                         .num_queries = args.num_queries,
                         .keys = keys.rows,
                         .key_bytes = keys.row_bytes,
                         .key_cols = keys.cols,
                         .num_keys = count,
                         .next_keys = keys.next,
                         .dim = args.key_dim,
                         .scores = args.scores,
                         .score_stride = kScoreStride});
    int32_t limits[kMaxQueries];
    for (int q = 0; q < args.num_queries; ++q) {
      limits[q] = std::clamp(args.limits[q] - first, 0, count);
      running.AddScores(q, args.scores + q * kScoreStride, limits[q]);
    }
    kernels.word_values({.weights = args.scores,
                         .weight_stride = kScoreStride,
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

WordTile TileOfCache(const KernelTable& kernels, const CachedRows& cache, int first, int count) {
  const int64_t row_bytes = WordRowBytes(cache.cols);
  const bool lies_as_words =
      cache.type == CacheType::kQ16 && FollowEachOther(cache, first, count, row_bytes);
  if (!lies_as_words) return LoadTile(kernels, cache, first, count);
  const int ahead = first + kWordTile;
  const int num_ahead = std::min(kWordTile, cache.num_rows - ahead);
  const bool has_next = num_ahead > 0 && FollowEachOther(cache, ahead, num_ahead, row_bytes);
  return {cache.rows[first], row_bytes, cache.cols, has_next ? cache.rows[ahead] : nullptr};
}

void TurnQueries(const KernelTable& kernels, const float* queries, int64_t query_stride,
                 int num_queries, int dim, float scale, std::byte* scratch, std::byte* panel) {
  const int64_t row_bytes = WordRowBytes(dim);
  for (int q = 0; q < num_queries; ++q) {
    kernels.round_words(queries + q * query_stride, dim, kLargestFactorWord,
                        scratch + q * row_bytes);
  }
  kernels.turn_words({.rows = scratch,
                      .row_bytes = row_bytes,
                      .cols = dim,
                      .num_rows = num_queries,
                      .dim = dim,
                      .scale = scale,
                      .panel = panel});
}

void AttendSpan(const KernelTable& kernels, const SpanArgs& args) {
  const int num_seen = *std::max_element(args.limits, args.limits + args.num_queries);
  const bool has_words = args.words.panel != nullptr;
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
