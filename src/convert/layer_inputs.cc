#include "convert/layer_inputs.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hadal {
namespace {

// Rows of all tokens that count with an expert's own, as many as this.
constexpr double kSharedRows = 64.0;

// The role whose input a matrix shares.
WeightRole InputRole(WeightRole role) {
  switch (role) {
    case WeightRole::kQ:
    case WeightRole::kKvA:
    case WeightRole::kIndexerK:
      return WeightRole::kQA;
    case WeightRole::kIndexerQB:
      return WeightRole::kQB;
    case WeightRole::kGate:
    case WeightRole::kUp:
    case WeightRole::kSharedUp:
      return WeightRole::kSharedGate;
    case WeightRole::kDown:
      return WeightRole::kSharedDown;
    default:
      return role;
  }
}

}  // namespace

LayerInputs::LayerInputs(const LayerWeights& weights, Backend* backend) : backend_(backend) {
  const auto add = [this](const QuantizedMatrix& w, WeightRole role) {
    if (w.empty()) return;
    roles_[w.data] = role;
    moments_.try_emplace(role, w.cols);
  };
  const AttentionWeights& attention = weights.attention;
  add(attention.q_a.empty() ? attention.q : attention.q_a, WeightRole::kQA);
  add(attention.q_b, WeightRole::kQB);
  add(attention.out, WeightRole::kOut);
  const FeedForwardWeights& feed_forward = weights.feed_forward;
  // The router sees what shared and routed experts see, and is there without shared ones too.
  add(feed_forward.router.empty() ? feed_forward.gate : feed_forward.router,
      WeightRole::kSharedGate);
  add(feed_forward.down, WeightRole::kSharedDown);
  expert_rows_.resize(feed_forward.expert_gate.size());
  if (!feed_forward.expert_gate.empty()) hidden_size_ = feed_forward.expert_gate[0].cols;
}

void LayerInputs::OnProduct(ConstFloatMatrix x, const QuantizedMatrix& w) {
  const auto found = roles_.find(w.data);
  if (found != roles_.end()) moments_.at(found->second).Add(x, backend_);
}

void LayerInputs::OnExperts(ConstFloatMatrix x, const ExpertChoice& choice) {
  const auto width = static_cast<size_t>(hidden_size_);
  const int first = static_cast<int>(expert_inputs_.size() / width);
  expert_inputs_.resize(expert_inputs_.size() + static_cast<size_t>(x.rows) * width);
  for (int t = 0; t < x.rows; ++t) {
    std::ranges::copy(x.row(t),
                      expert_inputs_.begin() + (int64_t{first} + t) * int64_t{hidden_size_});
    for (int rank = 0; rank < choice.ids.cols; ++rank) {
      expert_rows_[static_cast<size_t>(choice.ids.row_data(t)[rank])].push_back(
          {first + t, choice.weights.row_data(t)[rank]});
    }
  }
}

const InputMoments* LayerInputs::Moments(WeightRole role) const {
  const auto found = moments_.find(InputRole(role));
  return found == moments_.end() ? nullptr : &found->second;
}

// visit(inputs, weights): batches of the rows that chose the expert.
template <class Visit>
void LayerInputs::ForExpertBatches(int expert_idx, const Visit& visit) const {
  const std::vector<ExpertRow>& rows = expert_rows_[static_cast<size_t>(expert_idx)];
  std::vector<float> inputs(static_cast<size_t>(kMaxExpertBatchRows) *
                            static_cast<size_t>(hidden_size_));
  std::vector<float> weights;
  for (size_t begin = 0; begin < rows.size(); begin += kMaxExpertBatchRows) {
    const size_t count = std::min<size_t>(kMaxExpertBatchRows, rows.size() - begin);
    weights.clear();
    for (size_t i = 0; i < count; ++i) {
      const ExpertRow& row = rows[begin + i];
      std::copy_n(expert_inputs_.data() + int64_t{row.row} * hidden_size_, hidden_size_,
                  inputs.data() + static_cast<int64_t>(i) * hidden_size_);
      weights.push_back(row.weight);
    }
    visit(FloatMatrix{inputs.data(), static_cast<int>(count), hidden_size_, hidden_size_},
          std::span<const float>(weights));
  }
}

InputMoments LayerInputs::ExpertMoments(int expert_idx) const {
  InputMoments moments(hidden_size_);
  double weight_squares = 0.0;
  ForExpertBatches(expert_idx, [&](FloatMatrix x, std::span<const float> weights) {
    for (int i = 0; i < x.rows; ++i) {
      const float weight = weights[static_cast<size_t>(i)];
      weight_squares += double{weight} * weight;
      for (float& value : x.row(i)) value *= weight;
    }
    moments.Add(x, backend_);
  });
  const InputMoments* all = Moments(WeightRole::kSharedGate);
  if (all == nullptr) return moments;
  const auto rows = static_cast<double>(moments.num_rows());
  const double mean_square = rows > 0 ? weight_squares / rows : 1.0;
  moments.Blend(*all, mean_square * kSharedRows / std::max(rows, 1.0));
  return moments;
}

InputMoments LayerInputs::ExpertDownMoments(int expert_idx, const QuantizedMatrix& gate,
                                            const QuantizedMatrix& up) const {
  InputMoments moments(gate.rows);
  std::vector<float> gated(static_cast<size_t>(kMaxExpertBatchRows) *
                           static_cast<size_t>(gate.rows));
  ForExpertBatches(expert_idx, [&](FloatMatrix x, std::span<const float> weights) {
    const FloatMatrix out = {gated.data(), x.rows, gate.rows, gate.rows};
    backend_->GatedMatMul(x, gate, up, out);
    for (int i = 0; i < x.rows; ++i) {
      for (float& value : out.row(i)) value *= weights[static_cast<size_t>(i)];
    }
    moments.Add(out, backend_);
  });
  return moments;
}

}  // namespace hadal
