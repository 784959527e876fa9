// The routed experts of a layer on the CPU: the tokens of an expert are computed together, and each
// token adds the results in the order of its own ranking.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cpu/products.h"
#include "backend/cpu/rounded_rows.h"
#include "kernels/kernel_table.h"
#include "sys/thread_pool.h"

namespace hadal {

class ExpertScratch {
 public:
  // Takes nothing when the model has no experts. kResourceExhausted when memory is short.
  Status Prepare(const BackendLimits& limits, int num_threads);

  // Rows are (token, rank) pairs sorted by expert; at most max_step_tokens * num_experts_per_tok.
  FloatMatrix inputs;           // [rows, hidden_size]; unused where rounded_inputs are
  RoundedRows rounded_inputs;   // of tokens
  RoundedRows rounded_gated;    // of rows
  FloatMatrix gated;            // [rows, moe_intermediate_size]
  FloatMatrix outputs;          // [rows, hidden_size]
  std::vector<FloatMatrix> up;  // per worker [rows, kMaxOutputsPerShare]

  std::vector<int32_t> expert_begin;   // [experts + 1]: rows of each expert
  std::vector<int32_t> row_token;      // [rows]
  std::vector<int32_t> row_of_choice;  // [tokens * num_experts_per_tok]
  std::vector<int32_t> active;         // experts with rows

 private:
  Buffer buffer_;
};

void ExpertMlpOnCpu(const KernelTable& kernels, const Products& products, ConstFloatMatrix x,
                    const ExpertWeights& experts, const ExpertChoice& choice, FloatMatrix inout,
                    ThreadPool* pool, ExpertScratch* scratch);

}  // namespace hadal
