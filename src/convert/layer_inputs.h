// What the matrices of one layer are fed with on a calibration text.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "convert/input_moments.h"
#include "convert/recording_backend.h"
#include "model/weight_names.h"
#include "model/weight_store.h"

namespace hadal {

// Rows of an expert that are worked on at once.
inline constexpr int kMaxExpertBatchRows = 512;

class LayerInputs final : public ProductObserver {
 public:
  // `weights` are those that the observed layer runs with.
  LayerInputs(const LayerWeights& weights, Backend* backend);

  void OnProduct(ConstFloatMatrix x, const QuantizedMatrix& w) override;
  void OnExperts(ConstFloatMatrix x, const ExpertChoice& choice) override;

  // Of a matrix that is no expert's; null for a role without a product of its own.
  const InputMoments* Moments(WeightRole role) const;

  // Of gate and up of a routed expert: the rows that chose it, each with the weight that the router
  // gave it, and a share of all rows, so that an expert that was seldom chosen is not rounded for a
  // handful of words.
  InputMoments ExpertMoments(int expert_idx) const;

  // Of down, with these gate and up: the same rows behind the gated product.
  InputMoments ExpertDownMoments(int expert_idx, const QuantizedMatrix& gate,
                                 const QuantizedMatrix& up) const;

 private:
  struct ExpertRow {
    int row = 0;  // of expert_inputs_
    float weight = 0.0f;
  };
  template <class Visit>
  void ForExpertBatches(int expert_idx, const Visit& visit) const;

  Backend* backend_;
  // Products with the same input share its moments.
  std::map<const std::byte*, WeightRole> roles_;
  std::map<WeightRole, InputMoments> moments_;
  std::vector<float> expert_inputs_;  // [rows, hidden_size]
  int hidden_size_ = 0;
  std::vector<std::vector<ExpertRow>> expert_rows_;
};

}  // namespace hadal
