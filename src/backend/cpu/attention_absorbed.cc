// The absorbed form: the query is folded through UK, attends over the latents themselves, and the
// result is unfolded through UV. All heads share the keys, and tokens that follow each other share
// most of them, so a thread takes several heads of several tokens at a time.
#include <algorithm>
#include <array>

#include "backend/cpu/attention.h"
#include "backend/cpu/attention_span.h"
#include "backend/cpu/work_split.h"

namespace hadal {
namespace {

using Worker = AttentionScratch::Worker;

// A token of an absorbed range.
struct AbsorbedToken {
  const AttentionRange* range = nullptr;
  int row = 0;       // of queries, selection and out
  int num_keys = 0;  // positions, or entries of its selection
};

// Tokens whose rows follow each other, at most kTokenTile.
struct TokenTile {
  std::array<AbsorbedToken, AttentionScratch::kTokenTile> tokens;
  int size = 0;
};

// Tokens [first, first + count) of a tile, which see the same rows of the cache but for the last.
struct TokenGroup {
  int first = 0, count = 0;
};

class AbsorbedAttention {
 public:
  AbsorbedAttention(const KernelTable& kernels, const LatentAttentionArgs& args, ThreadPool* pool,
                    AttentionScratch* scratch)
      : kernels_(kernels), args_(args), shape_(args.shape), pool_(pool), scratch_(scratch) {}

  void Attend(const TokenTile& tile) {
    FoldQueries(tile);
    GroupTokens(tile);
    const int num_units = num_groups_ * num_head_tiles();
    int max_keys = 0;
    for (int t = 0; t < tile.size; ++t) max_keys = std::max(max_keys, tile.tokens[Idx(t)].num_keys);
    const int num_spans = CeilDiv(max_keys, kSpanPositions);
    if (num_units >= pool_->num_threads() || num_spans == 1) {
      pool_->ParallelForUntilStopped(num_units,
                                     [&](int unit, int worker) { AttendUnit(tile, unit, worker); });
    } else {
      AttendInRounds(tile, num_units, num_spans);
    }
    UnfoldOutputs(tile);
  }

 private:
  int head_row(int head) const { return head * (shape_.qk_nope_head_dim + shape_.v_head_dim); }

  // folded[t, h] = [UK_h^T q_nope ; q_rope]
  void FoldQueries(const TokenTile& tile) {
    const int first_row = tile.tokens[0].row;
    const int64_t token_stride = static_cast<int64_t>(shape_.num_heads) * shape_.latent_dim();
    pool_->ParallelFor(shape_.num_heads, [&](int head, int) {
      const float* queries = args_.queries.row_data(first_row) + head * shape_.qk_head_dim();
      float* folded = scratch_->folded_queries.row_data(head);
      kernels_.weighted_sum[static_cast<size_t>(args_.kv_b.format)](
          {.x = queries,
           .x_stride = args_.queries.stride,
           .num_rows = tile.size,
           .weights = KernelRows(args_.kv_b, head_row(head)),
           .num_weight_rows = shape_.qk_nope_head_dim,
           .out = folded,
           .out_stride = token_stride});
      for (int t = 0; t < tile.size; ++t) {
        std::copy_n(queries + t * args_.queries.stride + shape_.qk_nope_head_dim,
                    shape_.qk_rope_head_dim, folded + t * token_stride + shape_.kv_lora_rank);
      }
    });
  }

  // Points at the cache rows of entries [first, first + count) of what the token sees, `count` at
  // most a tile more than a span.
  void PointAtKeys(const AbsorbedToken& token, int first, int count, Worker* worker) const {
    const auto slot = [&](int position) {
      return token.range->block_ids[static_cast<size_t>(position / args_.block_tokens)] *
                 args_.block_tokens +
             position % args_.block_tokens;
    };
    const int32_t* selected =
        token.range->is_sparse ? args_.selection->positions.row_data(token.row) : nullptr;
    for (int s = 0; s < count; ++s) {
      const int position = selected != nullptr ? selected[first + s] : first + s;
      const std::byte* row = args_.cache.row_data(slot(position));
      worker->cache_rows[Idx(s)] = row;
      if (s < kSpanPositions) worker->key_rows[Idx(s)] = reinterpret_cast<const float*>(row);
    }
  }

  // Nothing where the rows are floats.
  WordSource WordsOf(Worker* worker, FloatMatrix queries, int num_cache_rows) const {
    if (args_.cache.type == CacheType::kF32) return {};
    TurnQueries(kernels_, queries.data, queries.stride, queries.rows, queries.cols, args_.scale,
                worker->words_to_turn, worker->query_panels);
    return {.panel = worker->query_panels,
            .cache = {.rows = worker->cache_rows.data(),
                      .num_rows = num_cache_rows,
                      .type = args_.cache.type,
                      .cols = args_.cache.cols,
                      .scratch = worker->cache_words}};
  }

  // A unit is what a thread attends together: a group of tokens, and all heads or kQueryTile of
  // them.
  static size_t Idx(int i) { return static_cast<size_t>(i); }
  static constexpr int kUnitRows = AttentionScratch::kQueryTile;
  int num_head_tiles() const { return CeilDiv(shape_.num_heads, kUnitRows); }
  const TokenGroup& GroupOf(int unit) const { return groups_[Idx(unit / num_head_tiles())]; }
  int FirstHead(int unit) const { return unit % num_head_tiles() * kUnitRows; }
  int NumHeads(int unit) const { return std::min(kUnitRows, shape_.num_heads - FirstHead(unit)); }
  int NumRows(int unit) const { return GroupOf(unit).count * NumHeads(unit); }
  // Row of folded_queries, latent_out, latent_max and latent_sum; the unit's rows follow it.
  int FirstLatentRow(int unit) const {
    return GroupOf(unit).first * shape_.num_heads + FirstHead(unit);
  }
  int MaxKeys(const TokenTile& tile, int unit) const {
    int max_keys = 0;
    const TokenGroup& group = GroupOf(unit);
    for (int t = group.first; t < group.first + group.count; ++t)
      max_keys = std::max(max_keys, tile.tokens[Idx(t)].num_keys);
    return max_keys;
  }

  // Tokens of a dense range together, as many as fill a unit with their heads.
  void GroupTokens(const TokenTile& tile) {
    const int most = std::max(1, kUnitRows / shape_.num_heads);
    num_groups_ = 0;
    for (int t = 0; t < tile.size; ++t) {
      const AttentionRange* range = tile.tokens[Idx(t)].range;
      TokenGroup* last = num_groups_ == 0 ? nullptr : &groups_[Idx(num_groups_ - 1)];
      const bool joins = last != nullptr && last->count < most && !range->is_sparse &&
                         tile.tokens[Idx(last->first)].range == range;
      if (joins) {
        ++last->count;
      } else {
        groups_[Idx(num_groups_++)] = {.first = t, .count = 1};
      }
    }
  }

  // Span `span` of one unit into out [rows, kv_lora_rank], max and sum.
  void AttendUnitSpan(const TokenTile& tile, int unit, int span, Worker* worker, FloatMatrix out,
                      float* max, float* sum) const {
    const TokenGroup& group = GroupOf(unit);
    const int first = span * kSpanPositions;
    const int num_heads = NumHeads(unit), num_rows = NumRows(unit);
    const int count = std::clamp(MaxKeys(tile, unit) - first, 0, kSpanPositions);
    const int num_ahead = std::clamp(MaxKeys(tile, unit) - first - count, 0, kWordTile);
    PointAtKeys(tile.tokens[Idx(group.first)], first, count + num_ahead, worker);
    for (int t = 0; t < group.count; ++t) {
      const int num_keys = tile.tokens[Idx(group.first + t)].num_keys;
      std::fill_n(worker->limits.begin() + t * num_heads, num_heads,
                  std::clamp(num_keys - first, 0, kSpanPositions));
    }
    const FloatMatrix queries = scratch_->folded_queries.Rows(FirstLatentRow(unit), num_rows);
    AttendSpan(kernels_, {.queries = queries.data,
                          .query_stride = queries.stride,
                          .num_queries = num_rows,
                          .limits = worker->limits.data(),
                          .keys = worker->key_rows.data(),
                          .values = worker->key_rows.data(),
                          .words = WordsOf(worker, queries, count + num_ahead),
                          .num_keys = count,
                          .key_dim = shape_.latent_dim(),
                          .value_dim = shape_.kv_lora_rank,
                          .scale = args_.scale,
                          .scores = worker->scores.data,
                          .score_stride = worker->scores.stride,
                          .out = out.data,
                          .out_stride = out.stride,
                          .max = max,
                          .sum = sum});
  }

  void ClearUnit(int unit) {
    std::fill_n(scratch_->latent_sum.begin() + FirstLatentRow(unit), NumRows(unit), 0.0f);
  }

  void MergeIntoUnit(int unit, FloatMatrix out, const float* max, const float* sum) {
    for (int r = 0; r < NumRows(unit); ++r) {
      const int row = FirstLatentRow(unit) + r;
      MergeSpan(kernels_, max[r], sum[r], out.row_data(r), shape_.kv_lora_rank,
                &scratch_->latent_max[Idx(row)], &scratch_->latent_sum[Idx(row)],
                scratch_->latent_out.row_data(row));
    }
  }

  void NormaliseUnit(int unit) {
    for (int r = 0; r < NumRows(unit); ++r) {
      const int row = FirstLatentRow(unit) + r;
      kernels_.scale(scratch_->latent_out.row_data(row), 1.0f / scratch_->latent_sum[Idx(row)],
                     shape_.kv_lora_rank);
    }
  }

  // All spans of one unit, one after another.
  void AttendUnit(const TokenTile& tile, int unit, int worker_idx) {
    Worker* worker = &scratch_->worker(worker_idx);
    float max[kUnitRows];
    float sum[kUnitRows];
    const int num_keys = MaxKeys(tile, unit);
    ClearUnit(unit);
    for (int span = 0; span * kSpanPositions < num_keys; ++span) {
      AttendUnitSpan(tile, unit, span, worker, worker->span_out, max, sum);
      MergeIntoUnit(unit, worker->span_out, max, sum);
    }
    NormaliseUnit(unit);
  }

  // Few units and a long context: spans are shared out, then merged in order.
  void AttendInRounds(const TokenTile& tile, int num_units, int num_spans) {
    constexpr int kRows = kUnitRows;
    const int spans_per_round = std::max(1, scratch_->num_partial_rows / (num_units * kRows));
    for (int unit = 0; unit < num_units; ++unit) ClearUnit(unit);
    for (int first = 0; first < num_spans; first += spans_per_round) {
      const int count = std::min(spans_per_round, num_spans - first);
      const auto partial_row = [&](int unit, int span) { return (unit * count + span) * kRows; };
      pool_->ParallelForUntilStopped(num_units * count, [&](int share, int worker) {
        const int unit = share / count, span = share % count;
        const int row = partial_row(unit, span);
        AttendUnitSpan(tile, unit, first + span, &scratch_->worker(worker),
                       scratch_->partial_out.Rows(row, kRows),
                       &scratch_->partial_max[static_cast<size_t>(row)],
                       &scratch_->partial_sum[static_cast<size_t>(row)]);
      });
      pool_->ParallelFor(num_units, [&](int unit, int) {
        for (int span = 0; span < count; ++span) {
          const int row = partial_row(unit, span);
          MergeIntoUnit(unit, scratch_->partial_out.Rows(row, kRows),
                        &scratch_->partial_max[static_cast<size_t>(row)],
                        &scratch_->partial_sum[static_cast<size_t>(row)]);
        }
      });
    }
    for (int unit = 0; unit < num_units; ++unit) NormaliseUnit(unit);
  }

  // out[t, h] = UV_h latent_out[t, h]
  void UnfoldOutputs(const TokenTile& tile) {
    const int64_t token_stride = static_cast<int64_t>(shape_.num_heads) * shape_.kv_lora_rank;
    pool_->ParallelFor(shape_.num_heads, [&](int head, int) {
      kernels_.matmul[static_cast<size_t>(args_.kv_b.format)](
          {.x = scratch_->latent_out.row_data(head),
           .x_stride = token_stride,
           .num_rows = tile.size,
           .weights = KernelRows(args_.kv_b, head_row(head) + shape_.qk_nope_head_dim),
           .num_outputs = shape_.v_head_dim,
           .out = args_.out.row_data(tile.tokens[0].row) + head * shape_.v_head_dim,
           .out_stride = args_.out.stride,
           .accumulate = false});
    });
  }

  const KernelTable& kernels_;
  const LatentAttentionArgs& args_;
  const HeadShape& shape_;
  ThreadPool* pool_;
  AttentionScratch* scratch_;
  std::array<TokenGroup, AttentionScratch::kTokenTile> groups_;
  int num_groups_ = 0;
};

}  // namespace

void AttendAbsorbed(const KernelTable& kernels, const LatentAttentionArgs& args, ThreadPool* pool,
                    AttentionScratch* scratch) {
  AbsorbedAttention attention(kernels, args, pool, scratch);
  TokenTile tile;
  const auto flush = [&] {
    if (tile.size > 0) attention.Attend(tile);
    tile.size = 0;
  };
  for (const AttentionRange& range : args.ranges) {
    if (!range.is_absorbed) continue;
    for (int t = 0; t < range.num_tokens; ++t) {
      const int row = range.token_begin + t;
      const bool follows =
          tile.size > 0 && row == tile.tokens[static_cast<size_t>(tile.size - 1)].row + 1;
      if (tile.size == AttentionScratch::kTokenTile || !follows) flush();
      const int num_keys = range.is_sparse ? args.selection->counts[static_cast<size_t>(row)]
                                           : range.first_position + t + 1;
      tile.tokens[static_cast<size_t>(tile.size++)] = {
          .range = &range, .row = row, .num_keys = num_keys};
    }
  }
  flush();
}

}  // namespace hadal
