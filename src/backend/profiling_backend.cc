#include "backend/profiling_backend.h"

#include <utility>

#include <fmt/format.h>

namespace hadal {
namespace {

std::string Sized(const char* what, const QuantizedMatrix& w) {
  return fmt::format("{} {}x{}", what, w.rows, w.cols);
}

class ProfilingBackend final : public Backend {
 public:
  ProfilingBackend(std::unique_ptr<Backend> inner, StepProfile* profile)
      : inner_(std::move(inner)), profile_(profile) {}

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
    Note("embed", [&] { inner_->Embed(tokens, table, out); });
  }
  void RmsNorm(ConstFloatMatrix x, std::span<const float> gain, float eps,
               FloatMatrix out) override {
    Note("norm", [&] { inner_->RmsNorm(x, gain, eps, out); });
  }
  void LayerNorm(ConstFloatMatrix x, std::span<const float> gain, std::span<const float> bias,
                 float eps, FloatMatrix out) override {
    Note("norm", [&] { inner_->LayerNorm(x, gain, bias, eps, out); });
  }
  void MatMul(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix out) override {
    Note(Sized("matmul", w), [&] { inner_->MatMul(x, w, out); });
  }
  void MatMulAdd(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix inout) override {
    Note(Sized("matmul", w), [&] { inner_->MatMulAdd(x, w, inout); });
  }
  void MatMulEach(ConstFloatMatrix x, std::span<const ProductTarget> targets) override {
    Note(Sized("matmuls", *targets[0].w), [&] { inner_->MatMulEach(x, targets); });
  }
  void GatedMatMul(ConstFloatMatrix x, const QuantizedMatrix& gate, const QuantizedMatrix& up,
                   FloatMatrix out) override {
    Note(Sized("gated matmul", gate), [&] { inner_->GatedMatMul(x, gate, up, out); });
  }
  void Rope(const RopeArgs& args) override {
    Note("rope", [&] { inner_->Rope(args); });
  }
  void StoreRows(ConstFloatMatrix rows, IndexView slots, CacheRows cache) override {
    Note("store rows", [&] { inner_->StoreRows(rows, slots, cache); });
  }
  void GatherRows(ConstFloatMatrix x, IndexView rows, FloatMatrix out) override {
    Note("gather rows", [&] { inner_->GatherRows(x, rows, out); });
  }
  void SelectPositions(const SelectPositionsArgs& args) override {
    Note("select positions", [&] { inner_->SelectPositions(args); });
  }
  void LatentAttention(const LatentAttentionArgs& args) override {
    Note("attention", [&] { inner_->LatentAttention(args); });
  }
  void ExpertMlp(ConstFloatMatrix x, const ExpertWeights& experts, const ExpertChoice& choice,
                 FloatMatrix inout) override {
    Note("experts", [&] { inner_->ExpertMlp(x, experts, choice, inout); });
  }
  void Add(ConstFloatMatrix x, FloatMatrix inout) override {
    Note("add", [&] { inner_->Add(x, inout); });
  }
  void WatchStop(const std::atomic<bool>* stop) override { inner_->WatchStop(stop); }
  Status Synchronize() override { return inner_->Synchronize(); }

 private:
  template <class Body>
  void Note(std::string_view name, const Body& body) {
    const StepProfile::Clock::time_point start = StepProfile::Clock::now();
    body();
    profile_->Add(name, start);
  }

  std::unique_ptr<Backend> inner_;
  StepProfile* profile_;
};

}  // namespace

std::unique_ptr<Backend> WithProfile(std::unique_ptr<Backend> inner, StepProfile* profile) {
  return std::make_unique<ProfilingBackend>(std::move(inner), profile);
}

}  // namespace hadal
