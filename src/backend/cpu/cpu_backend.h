// The operations on the CPU: cuts work over threads, calls kernels. Engine thread only.
#pragma once

#include <string>

#include "backend/backend.h"
#include "backend/cpu/attention.h"
#include "backend/cpu/experts.h"
#include "backend/cpu/products.h"
#include "backend/cpu/select_positions.h"
#include "kernels/kernel_table.h"
#include "sys/thread_pool.h"

namespace hadal {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const KernelTable& kernels, const BackendOptions& options, int num_threads);

  Device device() const override { return Device::kCpu; }
  std::string kernels_name() const override { return kernels_.name; }
  int num_threads() const override { return pool_.num_threads(); }

  Result<Buffer> Allocate(int64_t bytes) override { return Buffer::Allocate(bytes); }
  void Upload(std::span<const std::byte> host, std::byte* to) override;
  QuantizedMatrix UploadMatrix(const QuantizedMatrix& host, std::byte* to) override;
  Status Prepare(const BackendLimits& limits) override;

  void Embed(IndexView tokens, const QuantizedMatrix& table, FloatMatrix out) override;
  void RmsNorm(ConstFloatMatrix x, std::span<const float> gain, float eps,
               FloatMatrix out) override;
  void LayerNorm(ConstFloatMatrix x, std::span<const float> gain, std::span<const float> bias,
                 float eps, FloatMatrix out) override;
  void MatMul(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix out) override;
  void MatMulAdd(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix inout) override;
  void MatMulEach(ConstFloatMatrix x, std::span<const ProductTarget> targets) override;
  void GatedMatMul(ConstFloatMatrix x, const QuantizedMatrix& gate, const QuantizedMatrix& up,
                   FloatMatrix out) override;
  void Rope(const RopeArgs& args) override;
  void StoreRows(ConstFloatMatrix rows, IndexView slots, CacheRows cache) override;
  void GatherRows(ConstFloatMatrix x, IndexView rows, FloatMatrix out) override;
  void SelectPositions(const SelectPositionsArgs& args) override;
  void LatentAttention(const LatentAttentionArgs& args) override;
  void ExpertMlp(ConstFloatMatrix x, const ExpertWeights& experts, const ExpertChoice& choice,
                 FloatMatrix inout) override;
  void Add(ConstFloatMatrix x, FloatMatrix inout) override;
  void WatchStop(const std::atomic<bool>* stop) override { pool_.WatchStop(stop); }
  Status Synchronize() override { return Status::Ok(); }

 private:
  const KernelTable& kernels_;
  ThreadPool pool_;
  Products products_;
  AttentionScratch attention_;
  ExpertScratch experts_;
  SelectScratch select_;
};

}  // namespace hadal
