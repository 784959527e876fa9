// The expanded form: keys and values of a head are unfolded from the latents, one span at a time,
// and serve all queries of the range. A share is one head, so nothing that is unfolded leaves the
// thread's cache, let alone the step.
#include <algorithm>

#include "backend/cpu/attention.h"
#include "backend/cpu/attention_span.h"
#include "backend/cpu/work_split.h"

namespace hadal {
namespace {

using Worker = AttentionScratch::Worker;

// One head of one range on one thread.
class ExpandedHead {
 public:
  ExpandedHead(const KernelTable& kernels, const LatentAttentionArgs& args,
               const AttentionRange& range, int head, Worker* worker)
      : kernels_(kernels),
        args_(args),
        shape_(args.shape),
        range_(range),
        head_(head),
        worker_(worker) {
    if (has_words()) TurnUnfoldWeights();
  }

  void AttendDense() {
    const int end = range_.first_position + range_.num_tokens;
    ClearRunning(range_.num_tokens);
    TurnRangeQueries(range_.token_begin, range_.num_tokens);
    for (int span = 0; span < end; span += kSpanPositions) {
      const int num_keys = std::min(kSpanPositions, end - span);
      UnfoldSpan(num_keys, [&](int s) { return span + s; });
      for (int first = 0; first < range_.num_tokens; first += AttentionScratch::kQueryTile) {
        const int count = std::min(AttentionScratch::kQueryTile, range_.num_tokens - first);
        if (range_.first_position + first + count <= span) continue;  // all before this span
        for (int q = 0; q < count; ++q) {
          const int seen = range_.first_position + first + q + 1 - span;
          worker_->limits[static_cast<size_t>(q)] = std::clamp(seen, 0, num_keys);
        }
        AttendQueries(range_.token_begin + first, first, count, num_keys);
      }
    }
    WriteOut(range_.token_begin, range_.num_tokens);
  }

  // One token's selection: its latents are gathered and unfolded for this token alone. Dear, and
  // right: the absorbed form is the one to use for sparse attention.
  void AttendSparseToken(int token) {
    const int row = range_.token_begin + token;
    const int total = args_.selection->counts[static_cast<size_t>(row)];
    const int32_t* positions = args_.selection->positions.row_data(row);
    ClearRunning(1);
    TurnRangeQueries(row, 1);
    for (int span = 0; span < total; span += kSpanPositions) {
      const int num_keys = std::min(kSpanPositions, total - span);
      UnfoldSpan(num_keys, [&](int s) { return positions[span + s]; });
      worker_->limits[0] = num_keys;
      AttendQueries(row, 0, 1, num_keys);
    }
    WriteOut(row, 1);
  }

 private:
  bool has_words() const { return args_.cache.type != CacheType::kF32; }

  // Rows of UK_h, then of UV_h.
  int num_unfold_rows() const { return shape_.qk_nope_head_dim + shape_.v_head_dim; }
  int first_unfold_row() const { return head_ * num_unfold_rows(); }
  std::byte* key_panels() const { return worker_->unfold_panels; }
  std::byte* value_panels() const {
    return key_panels() +
           NumWordPanels(shape_.qk_nope_head_dim) * WordPanelBytes(shape_.kv_lora_rank);
  }

  void TurnUnfoldWeights() {
    TurnWeightRows(first_unfold_row(), shape_.qk_nope_head_dim, key_panels());
    TurnWeightRows(first_unfold_row() + shape_.qk_nope_head_dim, shape_.v_head_dim, value_panels());
  }
  void TurnWeightRows(int first, int count, std::byte* panels) {
    const WeightRows weights = KernelRows(args_.kv_b, 0);
    const auto format = static_cast<size_t>(args_.kv_b.format);
    const int64_t row_bytes = WordRowBytes(shape_.kv_lora_rank);
    for (int done = 0; done < count; done += kMaxWordQueries) {
      const int num = std::min(kMaxWordQueries, count - done);
      for (int r = 0; r < num; ++r) {
        kernels_.decode_row[format](weights, first + done + r, worker_->latents.row_data(0));
        kernels_.round_words(worker_->latents.row_data(0), shape_.kv_lora_rank, kLargestWord,
                             worker_->words_to_turn + r * row_bytes);
      }
      kernels_.turn_words({.rows = worker_->words_to_turn,
                           .row_bytes = row_bytes,
                           .cols = shape_.kv_lora_rank,
                           .num_rows = num,
                           .dim = shape_.kv_lora_rank,
                           .scale = 1.0f,
                           .panel = panels});
      panels += WordPanelBytes(shape_.kv_lora_rank);
    }
  }

  // Queries of `count` tokens, rows from `row` on, into the worker's panels: once for all spans.
  void TurnRangeQueries(int row, int count) {
    if (!has_words()) return;
    for (int first = 0; first < count; first += AttentionScratch::kQueryTile) {
      TurnQueries(kernels_, QueriesOf(row + first), args_.queries.stride,
                  std::min(AttentionScratch::kQueryTile, count - first), shape_.qk_head_dim(),
                  args_.scale, worker_->words_to_turn, PanelOf(first));
    }
  }
  const float* QueriesOf(int row) const {
    return args_.queries.row_data(row) + head_ * shape_.qk_head_dim();
  }
  // Of the queries that stand `first` after the first ones that were turned.
  std::byte* PanelOf(int first) const {
    return worker_->query_panels +
           first / AttentionScratch::kQueryTile * WordPanelBytes(shape_.qk_head_dim());
  }

  // Keys and values of the positions position_of(0 .. count).
  template <class PositionOf>
  void UnfoldSpan(int count, const PositionOf& position_of) {
    for (int first = 0; first < count; first += AttentionScratch::kUnfoldTile) {
      const int num = std::min(AttentionScratch::kUnfoldTile, count - first);
      const int num_ahead = std::min(AttentionScratch::kUnfoldTile, count - first - num);
      for (int r = 0; r < num + num_ahead; ++r) {
        worker_->cache_rows[static_cast<size_t>(r)] =
            args_.cache.row_data(SlotOf(position_of(first + r)));
      }
      // Floats that become words are over with the tile, and stay in the near caches.
      const int row = has_words() ? 0 : first;
      has_words() ? UnfoldWords(num, num_ahead) : UnfoldFloats(row, num);
      for (int r = 0; r < num; ++r) {
        LoadCacheRow(r, shape_.kv_lora_rank,
                     worker_->keys.row_data(row + r) + shape_.qk_nope_head_dim);
      }
      if (has_words()) RoundTile(first, num);
    }
    for (int s = 0; s < count && !has_words(); ++s) {
      worker_->key_rows[static_cast<size_t>(s)] = worker_->keys.row_data(s);
      worker_->value_rows[static_cast<size_t>(s)] = worker_->values.row_data(s);
    }
  }

  // Columns from `first` on of the r-th row that the worker points at.
  void LoadCacheRow(int r, int first, float* x) {
    kernels_.load_cache_row[static_cast<size_t>(args_.cache.type)](
        worker_->cache_rows[static_cast<size_t>(r)], args_.cache.cols, first, x);
  }

  int SlotOf(int position) const {
    return range_.block_ids[static_cast<size_t>(position / args_.block_tokens)] *
               args_.block_tokens +
           position % args_.block_tokens;
  }

  // Rows [first, first + num) of the span, but for the rotated part of the keys: UK_h c_s and
  // UV_h c_s for the `num` rows that the worker points at.
  void UnfoldFloats(int first, int num) {
    for (int r = 0; r < num; ++r) LoadCacheRow(r, 0, worker_->latents.row_data(r));
    MatMulArgs product = {.x = worker_->latents.data,
                          .x_stride = worker_->latents.stride,
                          .num_rows = num,
                          .weights = KernelRows(args_.kv_b, first_unfold_row()),
                          .num_outputs = shape_.qk_nope_head_dim,
                          .out = worker_->keys.row_data(first),
                          .out_stride = worker_->keys.stride,
                          .accumulate = false};
    const auto format = static_cast<size_t>(args_.kv_b.format);
    kernels_.matmul[format](product);
    product.weights = KernelRows(args_.kv_b, first_unfold_row() + shape_.qk_nope_head_dim);
    product.num_outputs = shape_.v_head_dim;
    product.out = worker_->values.row_data(first);
    product.out_stride = worker_->values.stride;
    kernels_.matmul[format](product);
  }

  // The same into the first rows, on words: the products of a latent with rows of UK_h are scores
  // of turned weights.
  void UnfoldWords(int num, int num_ahead) {
    const WordTile tile = TileOfCache(kernels_,
                                      {.rows = worker_->cache_rows.data(),
                                       .num_rows = num + num_ahead,
                                       .type = args_.cache.type,
                                       .cols = args_.cache.cols,
                                       .scratch = worker_->cache_words},
                                      0, num);
    UnfoldPart(tile, num, key_panels(), worker_->keys.Cols(0, shape_.qk_nope_head_dim));
    UnfoldPart(tile, num, value_panels(), worker_->values);
  }
  void UnfoldPart(const WordTile& tile, int num, const std::byte* panels, FloatMatrix out) {
    for (int done = 0; done < out.cols; done += kMaxWordQueries) {
      kernels_.word_scores({.panel = panels,
                            .num_queries = std::min(kMaxWordQueries, out.cols - done),
                            .keys = tile.rows,
                            .key_bytes = tile.row_bytes,
                            .key_cols = tile.cols,
                            .num_keys = num,
                            .next_keys = done == 0 ? tile.next : nullptr,
                            .dim = shape_.kv_lora_rank,
                            .scores = out.data + done,
                            .score_stride = out.stride,
                            .has_key_rows = true});
      panels += WordPanelBytes(shape_.kv_lora_rank);
    }
  }

  // The first `num` rows of floats into rows [first, first + num) of words.
  void RoundTile(int first, int num) {
    for (int r = 0; r < num; ++r) {
      kernels_.round_words(worker_->keys.row_data(r), shape_.qk_head_dim(), kLargestWord,
                           worker_->key_words + (first + r) * WordRowBytes(shape_.qk_head_dim()));
      kernels_.round_words(worker_->values.row_data(r), shape_.v_head_dim, kLargestWord,
                           worker_->value_words + (first + r) * WordRowBytes(shape_.v_head_dim));
    }
  }

  WordSource Words(int first) const {
    if (!has_words()) return {};
    return {.panel = PanelOf(first),
            .cache = {},
            .keys = worker_->key_words,
            .values = worker_->value_words};
  }

  void ClearRunning(int count) {
    std::fill_n(worker_->sum.begin(), count, 0.0f);
    for (int q = 0; q < count; ++q) {
      std::fill_n(worker_->running.row_data(q), worker_->running.cols, 0.0f);
    }
  }

  // Attends `count` queries, rows from `row` on, to the unfolded span and merges with what the
  // worker has of them, rows from `first` on. limits are in the worker.
  void AttendQueries(int row, int first, int count, int num_keys) {
    float span_max[AttentionScratch::kQueryTile];
    float span_sum[AttentionScratch::kQueryTile];
    AttendSpan(kernels_, {.queries = QueriesOf(row),
                          .query_stride = args_.queries.stride,
                          .num_queries = count,
                          .limits = worker_->limits.data(),
                          .keys = worker_->key_rows.data(),
                          .values = worker_->value_rows.data(),
                          .words = Words(first),
                          .num_keys = num_keys,
                          .key_dim = shape_.qk_head_dim(),
                          .value_dim = shape_.v_head_dim,
                          .scale = args_.scale,
                          .scores = worker_->scores.data,
                          .score_stride = worker_->scores.stride,
                          .out = worker_->span_out.data,
                          .out_stride = shape_.v_head_dim,
                          .max = span_max,
                          .sum = span_sum});
    for (int q = 0; q < count; ++q) {
      const auto running = static_cast<size_t>(first + q);
      MergeSpan(kernels_, span_max[q], span_sum[q], worker_->span_out.data + q * shape_.v_head_dim,
                shape_.v_head_dim, &worker_->max[running], &worker_->sum[running],
                worker_->running.row_data(first + q));
    }
  }

  void WriteOut(int first_row, int count) {
    const int dim = shape_.v_head_dim;
    for (int q = 0; q < count; ++q) {
      float* out = args_.out.row_data(first_row + q) + head_ * dim;
      std::copy_n(worker_->running.row_data(q), dim, out);
      kernels_.scale(out, 1.0f / worker_->sum[static_cast<size_t>(q)], dim);
    }
  }

  const KernelTable& kernels_;
  const LatentAttentionArgs& args_;
  const HeadShape& shape_;
  const AttentionRange& range_;
  const int head_;
  Worker* const worker_;
};

}  // namespace

void AttendExpanded(const KernelTable& kernels, const LatentAttentionArgs& args,
                    const AttentionRange& range, ThreadPool* pool, AttentionScratch* scratch) {
  pool->ParallelForUntilStopped(args.shape.num_heads, [&](int head, int worker) {
    ExpandedHead expanded(kernels, args, range, head, &scratch->worker(worker));
    if (!range.is_sparse) return expanded.AttendDense();
    for (int token = 0; token < range.num_tokens; ++token) expanded.AttendSparseToken(token);
  });
}

}  // namespace hadal
