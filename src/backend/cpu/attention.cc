#include "backend/cpu/attention.h"

#include <algorithm>

#include "base/types.h"

namespace hadal {
namespace {

// Hands out parts of one allocation, each at a multiple of 64 bytes.
class Carver {
 public:
  explicit Carver(std::byte* data) : data_(data) {}
  float* Take(int64_t count) {
    auto* part = reinterpret_cast<float*>(data_ == nullptr ? nullptr : data_ + used_);
    used_ += RoundUp<int64_t>(count * static_cast<int64_t>(sizeof(float)), 64);
    return part;
  }
  FloatMatrix TakeMatrix(int64_t rows, int cols) {
    float* data = Take(rows * cols);
    return {data, static_cast<int>(rows), cols, cols};
  }
  std::byte* TakeBytes(int64_t bytes) {
    return reinterpret_cast<std::byte*>(Take((bytes + 3) / 4));
  }
  std::byte* TakeWordRows(int64_t rows, int cols) { return TakeBytes(rows * WordRowBytes(cols)); }
  std::span<float> TakeSpan(int64_t count) {
    float* data = Take(count);
    return {data, data == nullptr ? 0 : static_cast<size_t>(count)};
  }
  int64_t used() const { return used_; }

 private:
  std::byte* data_;
  int64_t used_ = 0;
};

}  // namespace

Status AttentionScratch::Prepare(const BackendLimits& limits, int num_threads) {
  const HeadShape& shape = limits.shape;
  workers_.resize(static_cast<size_t>(num_threads));
  num_partial_rows = std::max(4 * num_threads, 16) * kQueryTile;
  const auto carve = [&](Carver carver) {
    for (Worker& worker : workers_) {
      worker.scores = carver.TakeMatrix(kQueryTile, kSpanPositions);
      worker.span_out =
          carver.TakeMatrix(kQueryTile, std::max(shape.v_head_dim, shape.kv_lora_rank));
      worker.keys = carver.TakeMatrix(kSpanPositions, shape.qk_head_dim());
      worker.values = carver.TakeMatrix(kSpanPositions, shape.v_head_dim);
      worker.latents = carver.TakeMatrix(kUnfoldTile, shape.latent_dim());
      worker.words_to_turn =
          carver.TakeWordRows(kQueryTile, std::max(shape.latent_dim(), shape.qk_head_dim()));
      worker.cache_words = carver.TakeWordRows(kWordTile, shape.latent_dim());
      worker.key_words = carver.TakeWordRows(kSpanPositions, shape.qk_head_dim());
      worker.value_words = carver.TakeWordRows(kSpanPositions, shape.v_head_dim);
      worker.query_panels = carver.TakeBytes(
          std::max(WordPanelBytes(shape.latent_dim()),
                   NumWordPanels(limits.max_step_tokens) * WordPanelBytes(shape.qk_head_dim())));
      worker.unfold_panels = carver.TakeBytes(
          (NumWordPanels(shape.qk_nope_head_dim) + NumWordPanels(shape.v_head_dim)) *
          WordPanelBytes(shape.kv_lora_rank));
      worker.running = carver.TakeMatrix(limits.max_step_tokens, shape.v_head_dim);
      worker.max = carver.TakeSpan(limits.max_step_tokens);
      worker.sum = carver.TakeSpan(limits.max_step_tokens);
    }
    const int64_t rows = static_cast<int64_t>(kTokenTile) * shape.num_heads;
    folded_queries = carver.TakeMatrix(rows, shape.latent_dim());
    latent_out = carver.TakeMatrix(rows, shape.kv_lora_rank);
    latent_max = carver.TakeSpan(rows);
    latent_sum = carver.TakeSpan(rows);
    partial_out = carver.TakeMatrix(num_partial_rows, shape.kv_lora_rank);
    partial_max = carver.TakeSpan(num_partial_rows);
    partial_sum = carver.TakeSpan(num_partial_rows);
    return carver.used();
  };
  ASSIGN_OR_RETURN(buffer_, Buffer::Allocate(carve(Carver(nullptr))));
  carve(Carver(buffer_.data()));
  for (Worker& worker : workers_) {
    worker.cache_rows.resize(kSpanPositions + kWordTile);
    worker.key_rows.resize(kSpanPositions);
    worker.value_rows.resize(kSpanPositions);
    worker.limits.resize(kQueryTile);
  }
  return Status::Ok();
}

}  // namespace hadal
