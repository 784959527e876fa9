// YaRN frequencies and the angles of a step. One set of angles serves queries, keys, prompts and
// decoding.
#pragma once

#include <vector>

#include "model/model_config.h"
#include "tensor/matrix.h"

namespace hadal {

class RopeTable {
 public:
  // Specification, 3.5; without scaling, theta^(-2i/d).
  explicit RopeTable(const ModelConfig& config);

  // f'_i, one per pair: qk_rope_head_dim / 2 values. They are static: the same at every context
  // length.
  const std::vector<double>& inverse_frequencies() const { return inverse_frequencies_; }
  // Multiplier of cos and sin: m(mscale) / m(mscale_all_dim). Specification, 3.6.
  double amplitude() const { return amplitude_; }

  // cos and sin [positions, pairs] of position * f'_i, times amplitude().
  void FillAngles(IndexView positions, FloatMatrix cos, FloatMatrix sin) const;
  // The same without the amplitude: the indexer's rotation. Specification, 6.1.
  void FillPlainAngles(IndexView positions, FloatMatrix cos, FloatMatrix sin) const;

 private:
  void Fill(IndexView positions, double amplitude, FloatMatrix cos, FloatMatrix sin) const;

  std::vector<double> inverse_frequencies_;
  double amplitude_ = 1.0;
};

// m(u) = 0.1 * u * ln(factor) + 1, or 1 when factor <= 1. Specification, 3.6.
double YarnMscale(double factor, double u);

}  // namespace hadal
