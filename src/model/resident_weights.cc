#include "model/resident_weights.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/types.h"

namespace hadal {
namespace {

constexpr int64_t kAlignment = 64;

// Matrices of the same bytes that want them in the same layout share a copy.
using CopyKey = std::pair<const std::byte*, int>;
CopyKey KeyOf(const QuantizedMatrix& matrix) { return {matrix.data, matrix.group_size}; }

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
  std::set<CopyKey> seen;
  int64_t bytes = 0;
  // The walk changes nothing.
  for (const QuantizedMatrix* matrix : Matrices(const_cast<ModelWeights*>(&weights))) {
    if (seen.insert(KeyOf(*matrix)).second) bytes += RoundUp(matrix->bytes(), kAlignment);
  }
  return bytes;
}

Status MakeResident(const Checkpoint& checkpoint, Backend* backend, ModelWeights* weights) {
  ASSIGN_OR_RETURN(Buffer memory, backend->Allocate(ResidentBytes(*weights)));
  std::map<CopyKey, QuantizedMatrix> copies;
  std::byte* to = memory.data();
  for (QuantizedMatrix* matrix : Matrices(weights)) {
    const auto [copy, is_new] = copies.try_emplace(KeyOf(*matrix));
    if (is_new) {
      copy->second = backend->UploadMatrix(*matrix, to);
      checkpoint.DropPages({matrix->data, static_cast<size_t>(matrix->bytes())});
      to += RoundUp(matrix->bytes(), kAlignment);
    }
    matrix->data = copy->second.data;
    matrix->layout = copy->second.layout;
  }
  weights->resident = std::move(memory);
  return Status::Ok();
}

}  // namespace hadal
