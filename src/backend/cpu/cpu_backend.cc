#include "backend/cpu/cpu_backend.h"

#include <algorithm>

#include <fmt/format.h>

#include "backend/cpu/work_split.h"
#include "kernels/dispatch.h"
#include "sys/machine.h"

namespace hadal {
namespace {

// Below this many rows a loop over rows runs on the calling thread: starting the workers costs
// more.
constexpr int kMinRowsToShare = 8;

}  // namespace

CpuBackend::CpuBackend(const KernelTable& kernels, int num_threads)
    : kernels_(kernels), pool_(num_threads) {}

Status CpuBackend::Prepare(const BackendLimits& limits) {
  max_step_tokens_ = limits.max_step_tokens;
  const int64_t up_floats = static_cast<int64_t>(limits.max_step_tokens) * kMaxOutputsPerShare;
  ASSIGN_OR_RETURN(
      up_, Buffer::Allocate(pool_.num_threads() * up_floats * static_cast<int64_t>(sizeof(float))));
  RETURN_IF_ERROR(attention_.Prepare(limits, pool_.num_threads()));
  RETURN_IF_ERROR(experts_.Prepare(limits, pool_.num_threads()));
  return select_.Prepare(limits, pool_.num_threads());
}

template <class Body>
void CpuBackend::ForRows(int num_rows, const Body& body) {
  if (num_rows < kMinRowsToShare) {
    for (int row = 0; row < num_rows; ++row) body(row);
    return;
  }
  const int rows_per_share = std::max(1, num_rows / (4 * pool_.num_threads()));
  pool_.ParallelFor(CeilDiv(num_rows, rows_per_share), [&](int share, int) {
    const int end = std::min(num_rows, (share + 1) * rows_per_share);
    for (int row = share * rows_per_share; row < end; ++row) body(row);
  });
}

void CpuBackend::Embed(IndexView tokens, const QuantizedMatrix& table, FloatMatrix out) {
  const WeightRows rows = KernelRows(table, 0);
  ForRows(static_cast<int>(tokens.size()), [&](int t) {
    kernels_.decode_row[static_cast<size_t>(table.format)](rows, tokens[static_cast<size_t>(t)],
                                                           out.row_data(t));
  });
}

void CpuBackend::RmsNorm(ConstFloatMatrix x, std::span<const float> gain, float eps,
                         FloatMatrix out) {
  ForRows(x.rows, [&](int t) {
    kernels_.rms_norm(x.row_data(t), gain.data(), x.cols, eps, out.row_data(t));
  });
}

void CpuBackend::LayerNorm(ConstFloatMatrix x, std::span<const float> gain,
                           std::span<const float> bias, float eps, FloatMatrix out) {
  ForRows(x.rows, [&](int t) {
    kernels_.layer_norm(x.row_data(t), gain.data(), bias.data(), x.cols, eps, out.row_data(t));
  });
}

void CpuBackend::Product(ConstFloatMatrix x, const QuantizedMatrix& w, bool accumulate,
                         FloatMatrix out) {
  HADAL_DCHECK(x.cols == w.cols && out.cols == w.rows && out.rows == x.rows);
  const int per_share = OutputsPerShare(w.rows, pool_.num_threads());
  pool_.ParallelFor(CeilDiv(w.rows, per_share), [&](int share, int) {
    const int first = share * per_share;
    kernels_.matmul[static_cast<size_t>(w.format)](
        {.x = x.data,
         .x_stride = x.stride,
         .num_rows = x.rows,
         .weights = KernelRows(w, first),
         .num_outputs = std::min(per_share, w.rows - first),
         .out = out.data + first,
         .out_stride = out.stride,
         .accumulate = accumulate});
  });
}

void CpuBackend::MatMul(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix out) {
  Product(x, w, /*accumulate=*/false, out);
}

void CpuBackend::MatMulAdd(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix inout) {
  Product(x, w, /*accumulate=*/true, inout);
}

void CpuBackend::GatedMatMul(ConstFloatMatrix x, const QuantizedMatrix& gate,
                             const QuantizedMatrix& up, FloatMatrix out) {
  HADAL_DCHECK(x.rows <= max_step_tokens_);
  const int per_share = OutputsPerShare(gate.rows, pool_.num_threads());
  auto* up_data = reinterpret_cast<float*>(up_.data());
  pool_.ParallelFor(CeilDiv(gate.rows, per_share), [&](int share, int worker) {
    const int first = share * per_share;
    const int count = std::min(per_share, gate.rows - first);
    float* up_out = up_data + static_cast<int64_t>(worker) * max_step_tokens_ * kMaxOutputsPerShare;
    MatMulArgs args = {.x = x.data,
                       .x_stride = x.stride,
                       .num_rows = x.rows,
                       .weights = KernelRows(gate, first),
                       .num_outputs = count,
                       .out = out.data + first,
                       .out_stride = out.stride,
                       .accumulate = false};
    kernels_.matmul[static_cast<size_t>(gate.format)](args);
    args.weights = KernelRows(up, first);
    args.out = up_out;
    args.out_stride = kMaxOutputsPerShare;
    kernels_.matmul[static_cast<size_t>(up.format)](args);
    for (int t = 0; t < x.rows; ++t) {
      float* gated = out.row_data(t) + first;
      kernels_.silu_mul(gated, up_out + t * kMaxOutputsPerShare, count, gated);
    }
  });
}

void CpuBackend::Rope(const RopeArgs& args) {
  const auto rotate =
      args.style == RopeStyle::kInterleaved ? kernels_.rope_interleaved : kernels_.rope_half_split;
  ForRows(args.x.rows, [&](int t) {
    float* row = args.x.row_data(t) + args.first;
    for (int part = 0; part < args.num_parts; ++part) {
      rotate(row + part * args.part_stride, args.cos.row_data(t), args.sin.row_data(t), args.size);
    }
  });
}

void CpuBackend::StoreRows(ConstFloatMatrix rows, IndexView slots, FloatMatrix cache) {
  ForRows(rows.rows, [&](int t) {
    std::copy_n(rows.row_data(t), rows.cols, cache.row_data(slots[static_cast<size_t>(t)]));
  });
}

void CpuBackend::GatherRows(ConstFloatMatrix x, IndexView rows, FloatMatrix out) {
  ForRows(out.rows, [&](int i) {
    std::copy_n(x.row_data(rows[static_cast<size_t>(i)]), x.cols, out.row_data(i));
  });
}

void CpuBackend::SelectPositions(const SelectPositionsArgs& args) {
  SelectPositionsOnCpu(kernels_, args, &pool_, &select_);
}

void CpuBackend::LatentAttention(const LatentAttentionArgs& args) {
  AttendAbsorbed(kernels_, args, &pool_, &attention_);
  for (const AttentionRange& range : args.ranges) {
    if (!range.is_absorbed) AttendExpanded(kernels_, args, range, &pool_, &attention_);
  }
}

void CpuBackend::ExpertMlp(ConstFloatMatrix x, const ExpertWeights& experts,
                           const ExpertChoice& choice, FloatMatrix inout) {
  ExpertMlpOnCpu(kernels_, x, experts, choice, inout, &pool_, &experts_);
}

void CpuBackend::Add(ConstFloatMatrix x, FloatMatrix inout) {
  ForRows(x.rows,
          [&](int t) { kernels_.add_scaled(x.row_data(t), 1.0f, x.cols, inout.row_data(t)); });
}

Result<std::unique_ptr<Backend>> CreateBackend(const BackendOptions& options) {
  const KernelTable* kernels =
      options.kernels.empty() ? &BestKernels() : FindKernels(options.kernels);
  if (kernels == nullptr) {
    std::string usable;
    for (const KernelTable* table : UsableKernels())
      usable += (usable.empty() ? "" : ", ") + std::string(table->name);
    return Status::InvalidArgument(
        fmt::format("kernels: expected one of {}, found '{}'", usable, options.kernels));
  }
  if (options.num_threads < 0 || options.num_threads > 1024) {
    return Status::InvalidArgument(
        fmt::format("threads: expected 0 (all cores) to 1024, found {}", options.num_threads));
  }
  const int threads = options.num_threads == 0 ? NumUsableCores() : options.num_threads;
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(*kernels, threads));
}

}  // namespace hadal
