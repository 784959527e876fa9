// A backend that shows somebody the inputs of products and passes everything on to another one.
#pragma once

#include <string>

#include "backend/backend.h"

namespace hadal {

class ProductObserver {
 public:
  virtual ~ProductObserver() = default;
  // Before a product of x with w (of GatedMatMul with both).
  virtual void OnProduct(ConstFloatMatrix x, const QuantizedMatrix& w) = 0;
  virtual void OnExperts(ConstFloatMatrix x, const ExpertChoice& choice) = 0;
};

class RecordingBackend final : public Backend {
 public:
  // `inner` must outlive this one.
  explicit RecordingBackend(Backend* inner) : inner_(inner) {}

  // Null: nobody is shown anything.
  void SetObserver(ProductObserver* observer) { observer_ = observer; }

  Device device() const override { return inner_->device(); }
  std::string kernels_name() const override { return inner_->kernels_name(); }
  int num_threads() const override { return inner_->num_threads(); }
  Result<Buffer> Allocate(int64_t bytes) override { return inner_->Allocate(bytes); }
  void Upload(std::span<const std::byte> host, std::byte* to) override { inner_->Upload(host, to); }
  QuantizedMatrix UploadMatrix(const QuantizedMatrix& host, std::byte* to) override {
    return inner_->UploadMatrix(host, to);
  }
  Status Prepare(const BackendLimits& limits) override { return inner_->Prepare(limits); }

  void Embed(IndexView tokens, const QuantizedMatrix& table, FloatMatrix out) override {
    inner_->Embed(tokens, table, out);
  }
  void RmsNorm(ConstFloatMatrix x, std::span<const float> gain, float eps,
               FloatMatrix out) override {
    inner_->RmsNorm(x, gain, eps, out);
  }
  void LayerNorm(ConstFloatMatrix x, std::span<const float> gain, std::span<const float> bias,
                 float eps, FloatMatrix out) override {
    inner_->LayerNorm(x, gain, bias, eps, out);
  }
  void MatMul(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix out) override {
    if (observer_ != nullptr) observer_->OnProduct(x, w);
    inner_->MatMul(x, w, out);
  }
  void MatMulAdd(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix inout) override {
    if (observer_ != nullptr) observer_->OnProduct(x, w);
    inner_->MatMulAdd(x, w, inout);
  }
  void MatMulEach(ConstFloatMatrix x, std::span<const ProductTarget> targets) override {
    if (observer_ != nullptr) {
      for (const ProductTarget& target : targets) observer_->OnProduct(x, *target.w);
    }
    inner_->MatMulEach(x, targets);
  }
  void GatedMatMul(ConstFloatMatrix x, const QuantizedMatrix& gate, const QuantizedMatrix& up,
                   FloatMatrix out) override {
    if (observer_ != nullptr) {
      observer_->OnProduct(x, gate);
      observer_->OnProduct(x, up);
    }
    inner_->GatedMatMul(x, gate, up, out);
  }
  void Rope(const RopeArgs& args) override { inner_->Rope(args); }
  void StoreRows(ConstFloatMatrix rows, IndexView slots, CacheRows cache) override {
    inner_->StoreRows(rows, slots, cache);
  }
  void GatherRows(ConstFloatMatrix x, IndexView rows, FloatMatrix out) override {
    inner_->GatherRows(x, rows, out);
  }
  void SelectPositions(const SelectPositionsArgs& args) override { inner_->SelectPositions(args); }
  void LatentAttention(const LatentAttentionArgs& args) override { inner_->LatentAttention(args); }
  void ExpertMlp(ConstFloatMatrix x, const ExpertWeights& experts, const ExpertChoice& choice,
                 FloatMatrix inout) override {
    if (observer_ != nullptr) observer_->OnExperts(x, choice);
    inner_->ExpertMlp(x, experts, choice, inout);
  }
  void Add(ConstFloatMatrix x, FloatMatrix inout) override { inner_->Add(x, inout); }
  void WatchStop(const std::atomic<bool>* stop) override { inner_->WatchStop(stop); }
  Status Synchronize() override { return inner_->Synchronize(); }

 private:
  Backend* inner_;
  ProductObserver* observer_ = nullptr;
};

}  // namespace hadal
