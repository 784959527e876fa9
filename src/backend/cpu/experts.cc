#include "backend/cpu/experts.h"

#include <algorithm>

#include "backend/cpu/work_split.h"

namespace hadal {
namespace {

// Sorts the (token, rank) pairs by expert, tokens in order within an expert.
void GroupByExpert(const ExpertChoice& choice, int num_experts, ExpertScratch* scratch) {
  const int num_tokens = choice.ids.rows, per_token = choice.ids.cols;
  std::vector<int32_t>& begin = scratch->expert_begin;
  std::fill_n(begin.begin(), num_experts + 1, 0);
  for (int t = 0; t < num_tokens; ++t) {
    for (int rank = 0; rank < per_token; ++rank)
      ++begin[static_cast<size_t>(choice.ids.row(t)[rank] + 1)];
  }
  scratch->active.clear();
  for (int e = 0; e < num_experts; ++e) {
    if (begin[static_cast<size_t>(e + 1)] > 0) scratch->active.push_back(e);
    begin[static_cast<size_t>(e + 1)] += begin[static_cast<size_t>(e)];
  }
  // begin[e] walks over the rows of e and ends at the begin of e + 1; shifted back below.
  for (int t = 0; t < num_tokens; ++t) {
    for (int rank = 0; rank < per_token; ++rank) {
      const int32_t row = begin[static_cast<size_t>(choice.ids.row(t)[rank])]++;
      scratch->row_token[static_cast<size_t>(row)] = t;
      scratch->row_of_choice[static_cast<size_t>(t * per_token + rank)] = row;
    }
  }
  for (int e = num_experts; e > 0; --e)
    begin[static_cast<size_t>(e)] = begin[static_cast<size_t>(e - 1)];
  begin[0] = 0;
}

MatMulArgs ExpertProduct(FloatMatrix x, int first_row, int num_rows, const QuantizedMatrix& weights,
                         int first, int count, float* out, int64_t out_stride) {
  return {.x = x.row_data(first_row),
          .x_stride = x.stride,
          .num_rows = num_rows,
          .weights = KernelRows(weights, first),
          .num_outputs = count,
          .out = out,
          .out_stride = out_stride,
          .accumulate = false};
}

}  // namespace

Status ExpertScratch::Prepare(const BackendLimits& limits, int num_threads) {
  if (limits.n_routed_experts == 0) return Status::Ok();
  const int64_t rows = static_cast<int64_t>(limits.max_step_tokens) * limits.num_experts_per_tok;
  const int64_t wide = rows * limits.hidden_size, narrow = rows * limits.moe_intermediate_size;
  const int64_t up_floats = rows * kMaxOutputsPerShare;
  ASSIGN_OR_RETURN(buffer_, Buffer::Allocate((2 * wide + narrow + num_threads * up_floats) *
                                             static_cast<int64_t>(sizeof(float))));
  auto* data = reinterpret_cast<float*>(buffer_.data());
  const auto take = [&](int cols) {
    const FloatMatrix part = {data, static_cast<int>(rows), cols, cols};
    data += rows * cols;
    return part;
  };
  inputs = take(limits.hidden_size);
  outputs = take(limits.hidden_size);
  gated = take(limits.moe_intermediate_size);
  up.clear();
  for (int worker = 0; worker < num_threads; ++worker) up.push_back(take(kMaxOutputsPerShare));
  expert_begin.resize(static_cast<size_t>(limits.n_routed_experts) + 1);
  row_token.resize(static_cast<size_t>(rows));
  row_of_choice.resize(static_cast<size_t>(rows));
  active.reserve(static_cast<size_t>(limits.n_routed_experts));
  return Status::Ok();
}

void ExpertMlpOnCpu(const KernelTable& kernels, ConstFloatMatrix x, const ExpertWeights& experts,
                    const ExpertChoice& choice, FloatMatrix inout, ThreadPool* pool,
                    ExpertScratch* scratch) {
  GroupByExpert(choice, static_cast<int>(experts.gate.size()), scratch);
  const int num_rows = choice.ids.rows * choice.ids.cols;
  const int num_active = static_cast<int>(scratch->active.size());
  const auto rows_of = [&](int expert) {
    const auto e = static_cast<size_t>(expert);
    return std::pair(scratch->expert_begin[e],
                     scratch->expert_begin[e + 1] - scratch->expert_begin[e]);
  };

  pool->ParallelFor(num_rows, [&](int row, int) {
    std::copy_n(x.row_data(scratch->row_token[static_cast<size_t>(row)]), x.cols,
                scratch->inputs.row_data(row));
  });

  const int width = experts.gate[0].rows;
  const int gate_share = OutputsPerShare(width, pool->num_threads());
  const int num_gate_shares = CeilDiv(width, gate_share);
  pool->ParallelFor(num_active * num_gate_shares, [&](int share, int worker) {
    const int expert = scratch->active[static_cast<size_t>(share / num_gate_shares)];
    const int first = share % num_gate_shares * gate_share;
    const int count = std::min(gate_share, width - first);
    const auto [begin, rows] = rows_of(expert);
    const QuantizedMatrix& gate = experts.gate[static_cast<size_t>(expert)];
    const QuantizedMatrix& up = experts.up[static_cast<size_t>(expert)];
    const FloatMatrix up_out = scratch->up[static_cast<size_t>(worker)];
    float* gate_out = scratch->gated.row_data(begin) + first;
    kernels.matmul[static_cast<size_t>(gate.format)](ExpertProduct(
        scratch->inputs, begin, rows, gate, first, count, gate_out, scratch->gated.stride));
    kernels.matmul[static_cast<size_t>(up.format)](
        ExpertProduct(scratch->inputs, begin, rows, up, first, count, up_out.data, up_out.stride));
    for (int r = 0; r < rows; ++r) {
      float* gated = gate_out + r * scratch->gated.stride;
      kernels.silu_mul(gated, up_out.row_data(r), count, gated);
    }
  });

  const int hidden = experts.down[0].rows;
  const int down_share = OutputsPerShare(hidden, pool->num_threads());
  const int num_down_shares = CeilDiv(hidden, down_share);
  pool->ParallelFor(num_active * num_down_shares, [&](int share, int) {
    const int expert = scratch->active[static_cast<size_t>(share / num_down_shares)];
    const int first = share % num_down_shares * down_share;
    const int count = std::min(down_share, hidden - first);
    const auto [begin, rows] = rows_of(expert);
    const QuantizedMatrix& down = experts.down[static_cast<size_t>(expert)];
    kernels.matmul[static_cast<size_t>(down.format)](
        ExpertProduct(scratch->gated, begin, rows, down, first, count,
                      scratch->outputs.row_data(begin) + first, scratch->outputs.stride));
  });

  pool->ParallelFor(choice.ids.rows, [&](int t, int) {
    for (int rank = 0; rank < choice.ids.cols; ++rank) {
      const int32_t row = scratch->row_of_choice[static_cast<size_t>(t * choice.ids.cols + rank)];
      kernels.add_scaled(scratch->outputs.row_data(row),
                         choice.weights.row(t)[static_cast<size_t>(rank)], inout.cols,
                         inout.row_data(t));
    }
  });
}

}  // namespace hadal
