#include "backend/cpu/select_positions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/types.h"

namespace hadal {
namespace {

// scores[s] of positions [first, first + count) for the token of row `row`.
void ScoreSpan(const KernelTable& kernels, const SelectPositionsArgs& args,
               const AttentionRange& range, int row, int first, int count, int worker,
               SelectScratch* scratch, float* scores) {
  std::vector<const float*>& keys = scratch->key_rows[static_cast<size_t>(worker)];
  for (int s = 0; s < count; ++s) {
    const int position = first + s;
    const int slot =
        range.block_ids[static_cast<size_t>(position / args.block_tokens)] * args.block_tokens +
        position % args.block_tokens;
    keys[static_cast<size_t>(s)] = args.cache.floats(slot);
  }
  const FloatMatrix head_scores = scratch->head_scores[static_cast<size_t>(worker)];
  kernels.attention_scores({.queries = args.queries.row_data(row),
                            .query_stride = args.head_dim,
                            .num_queries = args.num_heads,
                            .keys = keys.data(),
                            .num_keys = count,
                            .dim = args.head_dim,
                            .scale = 1.0f,
                            .scores = head_scores.data,
                            .score_stride = head_scores.stride});
  const float* head_weights = args.head_weights.row_data(row);
  for (int s = 0; s < count; ++s) {
    // ReLU acts on the product, before the weight, which may be negative.
    float sum = 0.0f;
    for (int h = 0; h < args.num_heads; ++h) {
      sum += head_weights[h] * std::max(head_scores.row_data(h)[s], 0.0f);
    }
    const float score = args.scale * sum;
    // A number that is none must not break the order below; the row's logits will show the fault.
    scores[s] = std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
  }
}

// The topk largest of scores[0 .. num_visible), ties to the lower position, in ascending order of
// position.
void KeepLargest(const float* scores, int num_visible, int topk, std::vector<int32_t>* candidates,
                 int32_t* positions) {
  const auto begin = candidates->begin();
  std::iota(begin, begin + num_visible, 0);
  std::nth_element(begin, begin + topk, begin + num_visible, [&](int32_t a, int32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  std::sort(begin, begin + topk);
  std::copy_n(begin, topk, positions);
}

}  // namespace

Status SelectScratch::Prepare(const BackendLimits& limits, int num_threads) {
  if (limits.index_n_heads == 0) return Status::Ok();
  const int64_t worker_floats = static_cast<int64_t>(limits.index_n_heads) * kSpanPositions;
  const int64_t score_floats = static_cast<int64_t>(kTokenTile) * limits.max_context_tokens;
  ASSIGN_OR_RETURN(buffer_, Buffer::Allocate((score_floats + num_threads * worker_floats) *
                                             static_cast<int64_t>(sizeof(float))));
  auto* data = reinterpret_cast<float*>(buffer_.data());
  scores = {data, kTokenTile, limits.max_context_tokens, limits.max_context_tokens};
  head_scores.clear();
  for (int worker = 0; worker < num_threads; ++worker) {
    head_scores.push_back({data + score_floats + worker * worker_floats, limits.index_n_heads,
                           kSpanPositions, kSpanPositions});
  }
  key_rows.assign(static_cast<size_t>(num_threads), std::vector<const float*>(kSpanPositions));
  candidates.assign(static_cast<size_t>(num_threads),
                    std::vector<int32_t>(static_cast<size_t>(limits.max_context_tokens)));
  return Status::Ok();
}

void SelectPositionsOnCpu(const KernelTable& kernels, const SelectPositionsArgs& args,
                          ThreadPool* pool, SelectScratch* scratch) {
  for (const AttentionRange& range : args.ranges) {
    if (!range.is_sparse) continue;
    for (int first = 0; first < range.num_tokens; first += SelectScratch::kTokenTile) {
      const int num_tokens = std::min(SelectScratch::kTokenTile, range.num_tokens - first);
      const int max_visible = range.first_position + first + num_tokens;
      const int num_spans = CeilDiv(max_visible, SelectScratch::kSpanPositions);
      pool->ParallelFor(num_tokens * num_spans, [&](int share, int worker) {
        const int token = share / num_spans;
        const int begin = share % num_spans * SelectScratch::kSpanPositions;
        const int end = std::min(begin + SelectScratch::kSpanPositions,
                                 range.first_position + first + token + 1);
        if (begin >= end) return;
        ScoreSpan(kernels, args, range, range.token_begin + first + token, begin, end - begin,
                  worker, scratch, scratch->scores.row_data(token) + begin);
      });
      pool->ParallelFor(num_tokens, [&](int token, int worker) {
        const int row = range.token_begin + first + token;
        const int num_visible = range.first_position + first + token + 1;
        int32_t* positions = args.selection->positions.row_data(row);
        if (num_visible <= args.topk) {
          std::iota(positions, positions + num_visible, 0);
        } else {
          KeepLargest(scratch->scores.row_data(token), num_visible, args.topk,
                      &scratch->candidates[static_cast<size_t>(worker)], positions);
        }
        args.selection->counts[static_cast<size_t>(row)] = std::min(num_visible, args.topk);
      });
    }
  }
}

}  // namespace hadal
