// Latent attention on the CPU, in both forms. See LatentAttentionArgs for the equations.
//
// The unit of summation is a span of kSpanPositions positions (entries of the selection, when
// sparse), counted from the start of the context. Each span gives a partial result (largest score,
// sum of exponentials, weighted values) that depends on the query and the span alone; partials are
// merged in the order of the spans. How spans, heads and queries are given to threads therefore
// changes no bit.
//
// On a float32 cache all of it is float32. On a rounded cache the products of scores, of weighted
// values and of unfolding are on words (kernel_table.h): what becomes a word is rounded by at most
// 2.5e-4 of the largest value of its group.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "kernels/kernel_table.h"
#include "sys/thread_pool.h"

namespace hadal {

inline constexpr int kSpanPositions = 512;

// Taken once for the largest step.
class AttentionScratch {
 public:
  // kResourceExhausted when memory is short.
  Status Prepare(const BackendLimits& limits, int num_threads);

  // Queries that are attended together: bounds the score matrix of a span.
  static constexpr int kQueryTile = 64;
  // Latents that are unfolded together.
  static constexpr int kUnfoldTile = kWordTile;
  // Tokens whose queries are folded together in the absorbed form.
  static constexpr int kTokenTile = 32;

  struct Worker {
    FloatMatrix scores;    // [kQueryTile, kSpanPositions]
    FloatMatrix span_out;  // [kQueryTile, max(v_head_dim, kv_lora_rank)]
    FloatMatrix keys;      // [kSpanPositions, qk_head_dim], expanded form
    FloatMatrix values;    // [kSpanPositions, v_head_dim], expanded form
    FloatMatrix latents;   // [kUnfoldTile, latent_dim]: rows that are unfolded
    // Rows of words: of what is about to be turned [kQueryTile], of the cache [kWordTile], of
    // unfolded keys and values [kSpanPositions].
    std::byte* words_to_turn = nullptr;
    std::byte* cache_words = nullptr;
    std::byte* key_words = nullptr;
    std::byte* value_words = nullptr;
    // Panels (WordPanelBytes()): of queries, kQueryTile in each; of UK and then of UV of a head.
    std::byte* query_panels = nullptr;
    std::byte* unfold_panels = nullptr;
    FloatMatrix running;  // [max_step_tokens, v_head_dim]: weighted values so far, expanded form
    std::span<float> max, sum;                 // [max_step_tokens]
    std::vector<const std::byte*> cache_rows;  // [kSpanPositions + kWordTile]: the next ones too
    std::vector<const float*> key_rows;        // [kSpanPositions]
    std::vector<const float*> value_rows;      // [kSpanPositions]
    std::vector<int32_t> limits;               // [kQueryTile]
  };

  Worker& worker(int idx) { return workers_[static_cast<size_t>(idx)]; }

  FloatMatrix folded_queries;  // [kTokenTile * num_heads, latent_dim]: [UK_h^T q_nope ; q_rope]
  FloatMatrix latent_out;      // [kTokenTile * num_heads, kv_lora_rank]
  // Partials of several spans of few queries: [num_partial_rows] each.
  int num_partial_rows = 0;
  FloatMatrix partial_out;  // [num_partial_rows, kv_lora_rank]
  std::span<float> partial_max, partial_sum;
  std::span<float> latent_max, latent_sum;  // [kTokenTile * num_heads]

 private:
  Buffer buffer_;
  std::vector<Worker> workers_;
};

void AttendExpanded(const KernelTable& kernels, const LatentAttentionArgs& args,
                    const AttentionRange& range, ThreadPool* pool, AttentionScratch* scratch);
void AttendAbsorbed(const KernelTable& kernels, const LatentAttentionArgs& args, ThreadPool* pool,
                    AttentionScratch* scratch);

}  // namespace hadal
