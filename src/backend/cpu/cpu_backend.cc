#include "backend/cpu/cpu_backend.h"

#include <algorithm>

#include <fmt/format.h>

#include "backend/cpu/row_loop.h"
#include "backend/cpu/work_split.h"
#include "kernels/dispatch.h"
#include "sys/machine.h"
#include "tensor/turn_blocks.h"

namespace hadal {
CpuBackend::CpuBackend(const KernelTable& kernels, const BackendOptions& options, int num_threads)
    : kernels_(kernels), pool_(num_threads), products_(kernels, options.activations, &pool_) {}

Status CpuBackend::Prepare(const BackendLimits& limits) {
  RETURN_IF_ERROR(products_.Prepare(limits));
  RETURN_IF_ERROR(attention_.Prepare(limits, pool_.num_threads()));
  RETURN_IF_ERROR(experts_.Prepare(limits, pool_.num_threads()));
  return select_.Prepare(limits, pool_.num_threads());
}

void CpuBackend::Upload(std::span<const std::byte> host, std::byte* to) {
  constexpr size_t kChunk = size_t{4} << 20;
  const int chunks = static_cast<int>(CeilDiv(host.size(), kChunk));
  pool_.ParallelFor(chunks, [&](int chunk, int) {
    const size_t begin = static_cast<size_t>(chunk) * kChunk;
    std::copy_n(host.data() + begin, std::min(kChunk, host.size() - begin), to + begin);
  });
}

QuantizedMatrix CpuBackend::UploadMatrix(const QuantizedMatrix& host, std::byte* to) {
  QuantizedMatrix matrix = host;
  matrix.data = to;
  // Blocks that meet rounded rows are turned now instead of at each product.
  const bool is_turned = IsBlocked(host.format) && host.group_size > 0 &&
                         host.rows % kTileRows == 0 && host.layout == WeightLayout::kRows;
  if (!is_turned) {
    Upload({host.data, static_cast<size_t>(host.bytes())}, to);
    return matrix;
  }
  matrix.layout = WeightLayout::kTiles;
  pool_.ParallelFor(host.rows / kTileRows, [&](int tile, int) {
    const int64_t offset = host.OffsetOfRow(tile * kTileRows);
    TurnBlocks(host.format, host.data + offset, kTileRows, host.cols, to + offset);
  });
  return matrix;
}

void CpuBackend::Embed(IndexView tokens, const QuantizedMatrix& table, FloatMatrix out) {
  const WeightRows rows = KernelRows(table, 0);
  ForRows(static_cast<int>(tokens.size()), &pool_, [&](int t) {
    kernels_.decode_row[static_cast<size_t>(table.format)](rows, tokens[static_cast<size_t>(t)],
                                                           out.row_data(t));
  });
}

void CpuBackend::RmsNorm(ConstFloatMatrix x, std::span<const float> gain, float eps,
                         FloatMatrix out) {
  ForRows(x.rows, &pool_, [&](int t) {
    kernels_.rms_norm(x.row_data(t), gain.data(), x.cols, eps, out.row_data(t));
  });
}

void CpuBackend::LayerNorm(ConstFloatMatrix x, std::span<const float> gain,
                           std::span<const float> bias, float eps, FloatMatrix out) {
  ForRows(x.rows, &pool_, [&](int t) {
    kernels_.layer_norm(x.row_data(t), gain.data(), bias.data(), x.cols, eps, out.row_data(t));
  });
}

void CpuBackend::MatMul(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix out) {
  products_.MatMul(x, w, /*accumulate=*/false, out);
}

void CpuBackend::MatMulAdd(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix inout) {
  products_.MatMul(x, w, /*accumulate=*/true, inout);
}

void CpuBackend::MatMulEach(ConstFloatMatrix x, std::span<const ProductTarget> targets) {
  products_.MatMulEach(x, targets);
}

void CpuBackend::GatedMatMul(ConstFloatMatrix x, const QuantizedMatrix& gate,
                             const QuantizedMatrix& up, FloatMatrix out) {
  products_.GatedMatMul(x, gate, up, out);
}

void CpuBackend::Rope(const RopeArgs& args) {
  const auto rotate =
      args.style == RopeStyle::kInterleaved ? kernels_.rope_interleaved : kernels_.rope_half_split;
  ForRows(args.x.rows, &pool_, [&](int t) {
    float* row = args.x.row_data(t) + args.first;
    for (int part = 0; part < args.num_parts; ++part) {
      rotate(row + part * args.part_stride, args.cos.row_data(t), args.sin.row_data(t), args.size);
    }
  });
}

void CpuBackend::StoreRows(ConstFloatMatrix rows, IndexView slots, CacheRows cache) {
  ForRows(rows.rows, &pool_, [&](int t) {
    kernels_.store_cache_row[static_cast<size_t>(cache.type)](
        rows.row_data(t), rows.cols, cache.row_data(slots[static_cast<size_t>(t)]));
  });
}

void CpuBackend::GatherRows(ConstFloatMatrix x, IndexView rows, FloatMatrix out) {
  ForRows(out.rows, &pool_, [&](int i) {
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
  ExpertMlpOnCpu(kernels_, products_, x, experts, choice, inout, &pool_, &experts_);
}

void CpuBackend::Add(ConstFloatMatrix x, FloatMatrix inout) {
  ForRows(x.rows, &pool_,
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
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(*kernels, options, threads));
}

}  // namespace hadal
