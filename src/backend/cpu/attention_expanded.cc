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

// Rows [slot, slot + count) of the cache as floats; where they are none, in the worker's scratch.
ConstFloatMatrix LatentsOf(const KernelTable& kernels, CacheRows cache, int slot, int count,
                           Worker* worker) {
  if (cache.type == CacheType::kF32) return {cache.floats(slot), count, cache.cols, cache.cols};
  for (int r = 0; r < count; ++r) {
    kernels.load_cache_row[static_cast<size_t>(cache.type)](cache.row_data(slot + r), cache.cols,
                                                            worker->latents.row_data(r));
  }
  return worker->latents.Rows(0, count);
}

// keys[s] = [UK_h c_s ; kr_s] and values[s] = UV_h c_s for `count` latents that follow each other
// from `latents`, into rows [first, first + count) of the worker's span.
void UnfoldLatents(const KernelTable& kernels, const LatentAttentionArgs& args, int head,
                   ConstFloatMatrix latents, int first, Worker* worker) {
  const HeadShape& shape = args.shape;
  const int head_row = head * (shape.qk_nope_head_dim + shape.v_head_dim);
  const auto format = static_cast<size_t>(args.kv_b.format);
  MatMulArgs product = {.x = latents.data,
                        .x_stride = latents.stride,
                        .num_rows = latents.rows,
                        .weights = KernelRows(args.kv_b, head_row),
                        .num_outputs = shape.qk_nope_head_dim,
                        .out = worker->keys.row_data(first),
                        .out_stride = worker->keys.stride,
                        .accumulate = false};
  kernels.matmul[format](product);
  product.weights = KernelRows(args.kv_b, head_row + shape.qk_nope_head_dim);
  product.num_outputs = shape.v_head_dim;
  product.out = worker->values.row_data(first);
  product.out_stride = worker->values.stride;
  kernels.matmul[format](product);
  for (int r = 0; r < latents.rows; ++r) {
    std::copy_n(latents.row_data(r) + shape.kv_lora_rank, shape.qk_rope_head_dim,
                worker->keys.row_data(first + r) + shape.qk_nope_head_dim);
  }
}

void PointAtUnfoldedRows(int count, Worker* worker) {
  for (int s = 0; s < count; ++s) {
    worker->key_rows[static_cast<size_t>(s)] = worker->keys.row_data(s);
    worker->value_rows[static_cast<size_t>(s)] = worker->values.row_data(s);
  }
}

void ClearRunning(int count, Worker* worker) {
  std::fill_n(worker->sum.begin(), count, 0.0f);
  for (int q = 0; q < count; ++q) {
    std::fill_n(worker->running.row_data(q), worker->running.cols, 0.0f);
  }
}

// Attends queries [first, first + count) of the range to the unfolded span and merges. limits are
// in the worker.
void AttendQueries(const KernelTable& kernels, const LatentAttentionArgs& args,
                   const AttentionRange& range, int head, int first, int count, int num_keys,
                   Worker* worker) {
  const HeadShape& shape = args.shape;
  float span_max[AttentionScratch::kQueryTile];
  float span_sum[AttentionScratch::kQueryTile];
  AttendSpan(kernels, {.queries = args.queries.row_data(range.token_begin + first) +
                                  head * shape.qk_head_dim(),
                       .query_stride = args.queries.stride,
                       .num_queries = count,
                       .limits = worker->limits.data(),
                       .keys = worker->key_rows.data(),
                       .values = worker->value_rows.data(),
                       .cached = {},
                       .num_keys = num_keys,
                       .key_dim = shape.qk_head_dim(),
                       .value_dim = shape.v_head_dim,
                       .scale = args.scale,
                       .scores = worker->scores.data,
                       .score_stride = worker->scores.stride,
                       .out = worker->span_out.data,
                       .out_stride = worker->span_out.stride,
                       .max = span_max,
                       .sum = span_sum});
  for (int q = 0; q < count; ++q) {
    MergeSpan(kernels, span_max[q], span_sum[q], worker->span_out.row_data(q), shape.v_head_dim,
              &worker->max[static_cast<size_t>(first + q)],
              &worker->sum[static_cast<size_t>(first + q)], worker->running.row_data(first + q));
  }
}

void WriteOut(const KernelTable& kernels, const LatentAttentionArgs& args, int first_token,
              int count, int head, Worker* worker) {
  const int dim = args.shape.v_head_dim;
  for (int q = 0; q < count; ++q) {
    float* out = args.out.row_data(first_token + q) + head * dim;
    std::copy_n(worker->running.row_data(q), dim, out);
    kernels.scale(out, 1.0f / worker->sum[static_cast<size_t>(q)], dim);
  }
}

void AttendDenseHead(const KernelTable& kernels, const LatentAttentionArgs& args,
                     const AttentionRange& range, int head, Worker* worker) {
  const int end = range.first_position + range.num_tokens;
  ClearRunning(range.num_tokens, worker);
  for (int span = 0; span < end; span += kSpanPositions) {
    const int num_keys = std::min(kSpanPositions, end - span);
    for (int done = 0; done < num_keys;) {
      const int position = span + done;
      const int offset = position % args.block_tokens;
      const int count = std::min(args.block_tokens - offset, num_keys - done);
      const int slot =
          range.block_ids[static_cast<size_t>(position / args.block_tokens)] * args.block_tokens +
          offset;
      UnfoldLatents(kernels, args, head, LatentsOf(kernels, args.cache, slot, count, worker), done,
                    worker);
      done += count;
    }
    PointAtUnfoldedRows(num_keys, worker);
    for (int first = 0; first < range.num_tokens; first += AttentionScratch::kQueryTile) {
      const int count = std::min(AttentionScratch::kQueryTile, range.num_tokens - first);
      if (range.first_position + first + count <= span) continue;  // all before this span
      for (int q = 0; q < count; ++q) {
        const int seen = range.first_position + first + q + 1 - span;
        worker->limits[static_cast<size_t>(q)] = std::clamp(seen, 0, num_keys);
      }
      AttendQueries(kernels, args, range, head, first, count, num_keys, worker);
    }
  }
  WriteOut(kernels, args, range.token_begin, range.num_tokens, head, worker);
}

// One token's selection: its latents are gathered and unfolded for this token alone. Dear, and
// right: the absorbed form is the one to use for sparse attention.
void AttendSparseToken(const KernelTable& kernels, const LatentAttentionArgs& args,
                       const AttentionRange& range, int head, int token, Worker* worker) {
  const int row = range.token_begin + token;
  const int total = args.selection->counts[static_cast<size_t>(row)];
  const int32_t* positions = args.selection->positions.row_data(row);
  ClearRunning(1, worker);
  AttentionRange one = range;
  one.token_begin = row;
  for (int span = 0; span < total; span += kSpanPositions) {
    const int num_keys = std::min(kSpanPositions, total - span);
    for (int s = 0; s < num_keys; ++s) {
      const int position = positions[span + s];
      const int slot =
          range.block_ids[static_cast<size_t>(position / args.block_tokens)] * args.block_tokens +
          position % args.block_tokens;
      kernels.load_cache_row[static_cast<size_t>(args.cache.type)](
          args.cache.row_data(slot), args.cache.cols, worker->latents.row_data(s));
    }
    const FloatMatrix gathered = worker->latents.Rows(0, num_keys);
    UnfoldLatents(kernels, args, head, gathered, 0, worker);
    PointAtUnfoldedRows(num_keys, worker);
    worker->limits[0] = num_keys;
    AttendQueries(kernels, args, one, head, 0, 1, num_keys, worker);
  }
  WriteOut(kernels, args, row, 1, head, worker);
}

}  // namespace

void AttendExpanded(const KernelTable& kernels, const LatentAttentionArgs& args,
                    const AttentionRange& range, ThreadPool* pool, AttentionScratch* scratch) {
  pool->ParallelFor(args.shape.num_heads, [&](int head, int worker_idx) {
    Worker* worker = &scratch->worker(worker_idx);
    if (!range.is_sparse) {
      AttendDenseHead(kernels, args, range, head, worker);
      return;
    }
    for (int token = 0; token < range.num_tokens; ++token) {
      AttendSparseToken(kernels, args, range, head, token, worker);
    }
  });
}

}  // namespace hadal
