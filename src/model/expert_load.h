// Which experts the tokens went to, counted while the model runs: what an operator needs to see
// that a model's routing is out of balance, and how many experts' weights the steps had to read.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tensor/matrix.h"

namespace hadal {

class ExpertLoad {
 public:
  // Layers and experts of a layer; 0 experts: nothing is ever counted.
  ExpertLoad(int num_layers, int num_experts);

  // The choices of one step's tokens in one layer, [tokens, num_experts_per_tok] ids below
  // num_experts. One thread.
  void Count(int layer_idx, MatrixView<const int32_t> ids);

  // Any thread, from here on. Sum over steps and layers of the experts that at least one token
  // chose: as often were an expert's weights read.
  int64_t num_reads() const { return num_reads_.load(std::memory_order_relaxed); }

  int num_layers() const { return num_layers_; }

  // Tokens that chose the layer's busiest expert, over the mean of its experts: 1 is perfect
  // balance, num_experts the worst. 0 when no token has been there: a dense layer.
  double Imbalance(int layer_idx) const;

 private:
  int num_layers_, num_experts_;
  std::vector<std::atomic<int64_t>> tokens_;  // [layers, experts]
  std::vector<char> is_chosen_;               // in the call that runs
  std::atomic<int64_t> num_reads_{0};
};

}  // namespace hadal
