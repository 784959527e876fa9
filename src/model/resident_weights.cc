#include "model/resident_weights.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/types.h"

namespace hadal {
namespace {

constexpr int64_t kAlignment = 64;

int64_t BytesOf(const QuantizedMatrix& matrix) {
  if (IsGrouped(matrix.format)) {
    return NumTiles(matrix.rows) * TileBytes(matrix.group_shape(), matrix.cols);
  }
  return matrix.rows * RowBytesOf(matrix.format, matrix.cols);
}

// All matrices in the order of the computation; some share their bytes.
std::vector<QuantizedMatrix*> Matrices(ModelWeights* weights) {
  std::vector<QuantizedMatrix*> all = {&weights->embedding};
  const auto add_layer = [&all](LayerWeights& layer) {
    AttentionWeights& attention = layer.attention;
    FeedForwardWeights& feed_forward = layer.feed_forward;
    for (QuantizedMatrix* matrix :
         {&attention.q, &attention.q_a, &attention.kv_a, &attention.q_b, &attention.indexer.k,
          &attention.indexer.q_b, &attention.indexer.weights, &attention.kv_b, &attention.out,
          &feed_forward.gate, &feed_forward.up, &feed_forward.down, &feed_forward.router}) {
      all.push_back(matrix);
    }
    for (size_t e = 0; e < feed_forward.expert_gate.size(); ++e) {
      all.push_back(&feed_forward.expert_gate[e]);
      all.push_back(&feed_forward.expert_up[e]);
      all.push_back(&feed_forward.expert_down[e]);
    }
  };
  for (LayerWeights& layer : weights->layers) add_layer(layer);
  all.push_back(&weights->head);
  if (weights->mtp) {
    all.push_back(&weights->mtp->embedding);
    all.push_back(&weights->mtp->eh_proj);
    add_layer(weights->mtp->layer);
    all.push_back(&weights->mtp->head);
  }
  std::erase_if(all, [](const QuantizedMatrix* matrix) { return matrix->empty(); });
  return all;
}

}  // namespace

int64_t ResidentBytes(const ModelWeights& weights) {
  std::unordered_map<const std::byte*, bool> seen;
  int64_t bytes = 0;
  // The walk changes nothing.
  for (const QuantizedMatrix* matrix : Matrices(const_cast<ModelWeights*>(&weights))) {
    if (seen.emplace(matrix->data, true).second) bytes += RoundUp(BytesOf(*matrix), kAlignment);
  }
  return bytes;
}

Status MakeResident(const Checkpoint& checkpoint, Backend* backend, ModelWeights* weights) {
  ASSIGN_OR_RETURN(Buffer memory, backend->Allocate(ResidentBytes(*weights)));
  std::unordered_map<const std::byte*, const std::byte*> copies;
  std::byte* to = memory.data();
  for (QuantizedMatrix* matrix : Matrices(weights)) {
    const auto [copy, is_new] = copies.emplace(matrix->data, to);
    if (is_new) {
      const int64_t bytes = BytesOf(*matrix);
      const std::span<const std::byte> from = {matrix->data, static_cast<size_t>(bytes)};
      backend->Upload(from, to);
      checkpoint.DropPages(from);
      to += RoundUp(bytes, kAlignment);
    }
    matrix->data = copy->second;
  }
  weights->resident = std::move(memory);
  return Status::Ok();
}

}  // namespace hadal
