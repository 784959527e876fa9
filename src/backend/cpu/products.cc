#include "backend/cpu/products.h"

#include <algorithm>

#include "backend/cpu/work_split.h"
#include "base/check.h"

namespace hadal {

void RunProduct(const KernelTable& kernels, const ProductInput& input, const ProductPart& part) {
  const WeightRows weights = KernelRows(part.w, part.first);
  if (input.rounded != nullptr) {
    const auto product = weights.is_turned ? kernels.turned_matmul[BlockedIdx(part.w.format)]
                                           : kernels.rounded_matmul[RoundedIdx(part.w.format)];
    product({.x = input.rounded,
             .row_bytes = input.rounded_row_bytes,
             .row_ids = input.row_ids,
             .num_rows = input.num_rows,
             .weights = weights,
             .num_outputs = part.count,
             .out = part.out,
             .out_stride = part.out_stride,
             .accumulate = part.accumulate});
  } else {
    kernels.matmul[static_cast<size_t>(part.w.format)]({.x = input.x,
                                                        .x_stride = input.x_stride,
                                                        .num_rows = input.num_rows,
                                                        .weights = weights,
                                                        .num_outputs = part.count,
                                                        .out = part.out,
                                                        .out_stride = part.out_stride,
                                                        .accumulate = part.accumulate});
  }
}

Status Products::Prepare(const BackendLimits& limits) {
  max_step_tokens_ = limits.max_step_tokens;
  const int64_t up_floats = static_cast<int64_t>(limits.max_step_tokens) * kMaxOutputsPerShare;
  ASSIGN_OR_RETURN(up_, Buffer::Allocate(pool_->num_threads() * up_floats *
                                         static_cast<int64_t>(sizeof(float))));
  return rounded_.Prepare(limits.max_step_tokens, limits.widest_input);
}

ProductInput Products::InputFor(ConstFloatMatrix x, const QuantizedMatrix& w) {
  ProductInput input = {.x = x.data, .x_stride = x.stride, .num_rows = x.rows};
  if (TakesRounded(w)) {
    rounded_.Round(kernels_, x, w.group_shape(), pool_);
    input.rounded = rounded_.data();
    input.rounded_row_bytes = rounded_.row_bytes();
  }
  return input;
}

void Products::MatMul(ConstFloatMatrix x, const QuantizedMatrix& w, bool accumulate,
                      FloatMatrix out) {
  HADAL_DCHECK(x.cols == w.cols && out.cols == w.rows && out.rows == x.rows);
  const ProductInput input = InputFor(x, w);
  const int per_share = OutputsPerShare(w.rows, pool_->num_threads());
  pool_->ParallelForUntilStopped(CeilDiv(w.rows, per_share), [&](int share, int) {
    const int first = share * per_share;
    RunProduct(kernels_, input,
               {.w = w,
                .first = first,
                .count = std::min(per_share, w.rows - first),
                .out = out.data + first,
                .out_stride = out.stride,
                .accumulate = accumulate});
  });
}

void Products::MatMulEach(ConstFloatMatrix x, std::span<const ProductTarget> targets) {
  const QuantizedMatrix& first_weight = *targets[0].w;
  int num_shares = 0;
  for (const ProductTarget& target : targets) {
    if (!TakeTheSame(*target.w, first_weight)) {
      for (const ProductTarget& each : targets) MatMul(x, *each.w, /*accumulate=*/false, each.out);
      return;
    }
    num_shares += CeilDiv(target.w->rows, OutputsPerShare(target.w->rows, pool_->num_threads()));
  }
  const ProductInput input = InputFor(x, first_weight);
  pool_->ParallelForUntilStopped(num_shares, [&](int share, int) {
    for (const ProductTarget& target : targets) {
      const int per_share = OutputsPerShare(target.w->rows, pool_->num_threads());
      const int shares = CeilDiv(target.w->rows, per_share);
      if (share >= shares) {
        share -= shares;
        continue;
      }
      const int first = share * per_share;
      RunProduct(kernels_, input,
                 {.w = *target.w,
                  .first = first,
                  .count = std::min(per_share, target.w->rows - first),
                  .out = target.out.data + first,
                  .out_stride = target.out.stride,
                  .accumulate = false});
      return;
    }
  });
}

void Products::GatedMatMul(ConstFloatMatrix x, const QuantizedMatrix& gate,
                           const QuantizedMatrix& up, FloatMatrix out) {
  HADAL_DCHECK(x.rows <= max_step_tokens_);
  // Weights that want different inputs meet plain floats.
  const ProductInput input =
      TakeTheSame(gate, up) ? InputFor(x, gate)
                            : ProductInput{.x = x.data, .x_stride = x.stride, .num_rows = x.rows};
  const int per_share = OutputsPerShare(gate.rows, pool_->num_threads());
  auto* up_data = reinterpret_cast<float*>(up_.data());
  pool_->ParallelForUntilStopped(CeilDiv(gate.rows, per_share), [&](int share, int worker) {
    const int first = share * per_share;
    const int count = std::min(per_share, gate.rows - first);
    float* up_out = up_data + static_cast<int64_t>(worker) * max_step_tokens_ * kMaxOutputsPerShare;
    RunProduct(kernels_, input,
               {.w = gate,
                .first = first,
                .count = count,
                .out = out.data + first,
                .out_stride = out.stride,
                .accumulate = false});
    RunProduct(kernels_, input,
               {.w = up,
                .first = first,
                .count = count,
                .out = up_out,
                .out_stride = kMaxOutputsPerShare,
                .accumulate = false});
    for (int t = 0; t < x.rows; ++t) {
      float* gated = out.row_data(t) + first;
      kernels_.silu_mul(gated, up_out + t * kMaxOutputsPerShare, count, gated);
    }
  });
}

}  // namespace hadal
