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

// The routed experts of one step.
class ExpertStep {
 public:
  ExpertStep(const KernelTable& kernels, const Products& products, const ExpertWeights& experts,
             ThreadPool* pool, ExpertScratch* scratch)
      : kernels_(kernels), products_(products), experts_(experts), pool_(pool), scratch_(scratch) {}

  // gated[row] = silu(gate x) * (up x)
  void Gate(ConstFloatMatrix x, int num_rows) {
    const bool is_rounded = AllTake(experts_.gate) && AllTake(experts_.up) &&
                            products_.TakeTheSame(First(experts_.gate), First(experts_.up));
    if (is_rounded) {
      scratch_->rounded_inputs.Round(kernels_, x, First(experts_.gate).group_shape(), pool_);
    } else {
      pool_->ParallelFor(num_rows, [&](int row, int) {
        std::copy_n(x.row_data(scratch_->row_token[static_cast<size_t>(row)]), x.cols,
                    scratch_->inputs.row_data(row));
      });
    }
    const int width = First(experts_.gate).rows;
    ForShares(width, [&](int expert, int first, int count, int worker) {
      const auto [begin, rows] = RowsOf(expert);
      ProductInput input = {.num_rows = rows};
      if (is_rounded) {
        input.rounded = scratch_->rounded_inputs.data();
        input.rounded_row_bytes = scratch_->rounded_inputs.row_bytes();
        input.row_ids = scratch_->row_token.data() + begin;
      } else {
        input.x = scratch_->inputs.row_data(begin);
        input.x_stride = scratch_->inputs.stride;
      }
      const FloatMatrix up_out = scratch_->up[static_cast<size_t>(worker)];
      float* gate_out = scratch_->gated.row_data(begin) + first;
      Run(input, experts_.gate[static_cast<size_t>(expert)], first, count, gate_out,
          scratch_->gated.stride);
      Run(input, experts_.up[static_cast<size_t>(expert)], first, count, up_out.data,
          up_out.stride);
      for (int r = 0; r < rows; ++r) {
        float* gated = gate_out + r * scratch_->gated.stride;
        kernels_.silu_mul(gated, up_out.row_data(r), count, gated);
      }
    });
  }

  // outputs[row] = down gated[row]
  void Down(int num_rows) {
    const bool is_rounded = AllTake(experts_.down);
    if (is_rounded) {
      scratch_->rounded_gated.Round(kernels_, scratch_->gated.Rows(0, num_rows),
                                    First(experts_.down).group_shape(), pool_);
    }
    const int hidden = First(experts_.down).rows;
    ForShares(hidden, [&](int expert, int first, int count, int) {
      const auto [begin, rows] = RowsOf(expert);
      ProductInput input = {.x = scratch_->gated.row_data(begin),
                            .x_stride = scratch_->gated.stride,
                            .num_rows = rows};
      if (is_rounded) {
        input.rounded_row_bytes = scratch_->rounded_gated.row_bytes();
        input.rounded = scratch_->rounded_gated.data() + begin * input.rounded_row_bytes;
      }
      Run(input, experts_.down[static_cast<size_t>(expert)], first, count,
          scratch_->outputs.row_data(begin) + first, scratch_->outputs.stride);
    });
  }

 private:
  const QuantizedMatrix& First(std::span<const QuantizedMatrix> weights) const {
    return weights[static_cast<size_t>(scratch_->active[0])];
  }

  // Whether the same rounded rows serve the weights of all experts at work.
  bool AllTake(std::span<const QuantizedMatrix> weights) const {
    if (!products_.TakesRounded(First(weights))) return false;
    return std::ranges::all_of(scratch_->active, [&](int32_t expert) {
      return products_.TakeTheSame(weights[static_cast<size_t>(expert)], First(weights));
    });
  }

  std::pair<int32_t, int32_t> RowsOf(int expert) const {
    const auto e = static_cast<size_t>(expert);
    const int32_t begin = scratch_->expert_begin[e];
    return {begin, scratch_->expert_begin[e + 1] - begin};
  }

  // body(expert, first output, outputs, worker) for pieces of all active experts.
  template <class Body>
  void ForShares(int num_outputs, const Body& body) {
    const int per_share = OutputsPerShare(num_outputs, pool_->num_threads());
    const int shares = CeilDiv(num_outputs, per_share);
    const int num_active = static_cast<int>(scratch_->active.size());
    pool_->ParallelForUntilStopped(num_active * shares, [&](int share, int worker) {
      const int expert = scratch_->active[static_cast<size_t>(share / shares)];
      const int first = share % shares * per_share;
      body(expert, first, std::min(per_share, num_outputs - first), worker);
    });
  }

  void Run(const ProductInput& input, const QuantizedMatrix& w, int first, int count, float* out,
           int64_t out_stride) const {
    RunProduct(kernels_, input,
               {.w = w,
                .first = first,
                .count = count,
                .out = out,
                .out_stride = out_stride,
                .accumulate = false});
  }

  const KernelTable& kernels_;
  const Products& products_;
  const ExpertWeights& experts_;
  ThreadPool* pool_;
  ExpertScratch* scratch_;
};

}  // namespace

Status ExpertScratch::Prepare(const BackendLimits& limits, int num_threads) {
  if (limits.n_routed_experts == 0) return Status::Ok();
  const int64_t rows = static_cast<int64_t>(limits.max_step_tokens) * limits.num_experts_per_tok;
  const int64_t wide = rows * limits.hidden_size, narrow = rows * limits.moe_intermediate_size;
  const int64_t up_floats = rows * kMaxOutputsPerShare;
  // Rows a power of two apart would share few lines of the nearest cache.
  constexpr int kPadding = 16;
  ASSIGN_OR_RETURN(buffer_, Buffer::Allocate((2 * wide + narrow + num_threads * up_floats +
                                              (3 + num_threads) * rows * kPadding) *
                                             static_cast<int64_t>(sizeof(float))));
  auto* data = reinterpret_cast<float*>(buffer_.data());
  const auto take = [&](int cols) {
    const FloatMatrix part = {data, static_cast<int>(rows), cols, cols + kPadding};
    data += rows * (cols + kPadding);
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
  RETURN_IF_ERROR(rounded_inputs.Prepare(limits.max_step_tokens, limits.hidden_size));
  return rounded_gated.Prepare(static_cast<int>(rows), limits.moe_intermediate_size);
}

void ExpertMlpOnCpu(const KernelTable& kernels, const Products& products, ConstFloatMatrix x,
                    const ExpertWeights& experts, const ExpertChoice& choice, FloatMatrix inout,
                    ThreadPool* pool, ExpertScratch* scratch) {
  GroupByExpert(choice, static_cast<int>(experts.gate.size()), scratch);
  const int num_rows = choice.ids.rows * choice.ids.cols;
  ExpertStep step(kernels, products, experts, pool, scratch);
  step.Gate(x, num_rows);
  step.Down(num_rows);
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
