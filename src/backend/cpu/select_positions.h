// The indexer's choice of positions on the CPU. See SelectPositionsArgs.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "kernels/kernel_table.h"
#include "sys/thread_pool.h"

namespace hadal {

class SelectScratch {
 public:
  // Tokens that are scored together; bounds the scores in memory.
  static constexpr int kTokenTile = 8;
  static constexpr int kSpanPositions = 256;

  // Takes nothing when the model has no indexer. kResourceExhausted when memory is short.
  Status Prepare(const BackendLimits& limits, int num_threads);

  FloatMatrix scores;                               // [kTokenTile, max_context_tokens]
  std::vector<FloatMatrix> head_scores;             // per worker [index_n_heads, kSpanPositions]
  std::vector<std::vector<const float*>> key_rows;  // per worker [kSpanPositions]
  std::vector<std::vector<int32_t>> candidates;     // per worker [max_context_tokens]

 private:
  Buffer buffer_;
};

void SelectPositionsOnCpu(const KernelTable& kernels, const SelectPositionsArgs& args,
                          ThreadPool* pool, SelectScratch* scratch);

}  // namespace hadal
