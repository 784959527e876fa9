#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hadal {
namespace {

// The pair index at which a wave of `beta` turns over the original context lies.
double CorrectionPair(double beta, int dim, double theta, double original_context) {
  return dim * std::log(original_context / (2 * std::numbers::pi * beta)) / (2 * std::log(theta));
}

}  // namespace

double YarnMscale(double factor, double u) {
  return factor <= 1.0 ? 1.0 : 0.1 * u * std::log(factor) + 1.0;
}

RopeTable::RopeTable(const ModelConfig& config) {
  const int dim = config.qk_rope_head_dim;
  const RopeScaling& scaling = config.rope_scaling;
  for (int i = 0; i < dim / 2; ++i) {
    inverse_frequencies_.push_back(std::pow(config.rope_theta, -2.0 * i / dim));
  }
  if (!scaling.is_yarn) return;
  amplitude_ = YarnMscale(scaling.factor, scaling.mscale) /
               YarnMscale(scaling.factor, scaling.mscale_all_dim);
  const double original = scaling.original_max_position_embeddings;
  const double low = std::max(
      std::floor(CorrectionPair(scaling.beta_fast, dim, config.rope_theta, original)), 0.0);
  double high = std::min(
      std::ceil(CorrectionPair(scaling.beta_slow, dim, config.rope_theta, original)), dim - 1.0);
  if (high == low) high += 0.001;
  for (int i = 0; i < dim / 2; ++i) {
    // The ramp runs over the pair index: fast pairs keep their frequency, slow ones are stretched
    // by the factor.
    const double stretched = std::clamp((i - low) / (high - low), 0.0, 1.0);
    double& frequency = inverse_frequencies_[static_cast<size_t>(i)];
    frequency = frequency / scaling.factor * stretched + frequency * (1.0 - stretched);
  }
}

void RopeTable::FillAngles(IndexView positions, FloatMatrix cos, FloatMatrix sin) const {
  Fill(positions, amplitude_, cos, sin);
}

void RopeTable::FillPlainAngles(IndexView positions, FloatMatrix cos, FloatMatrix sin) const {
  Fill(positions, 1.0, cos, sin);
}

void RopeTable::Fill(IndexView positions, double amplitude, FloatMatrix cos,
                     FloatMatrix sin) const {
  for (int t = 0; t < static_cast<int>(positions.size()); ++t) {
    float* cos_row = cos.row_data(t);
    float* sin_row = sin.row_data(t);
    for (size_t i = 0; i < inverse_frequencies_.size(); ++i) {
      const double angle = positions[static_cast<size_t>(t)] * inverse_frequencies_[i];
      cos_row[i] = static_cast<float>(std::cos(angle) * amplitude);
      sin_row[i] = static_cast<float>(std::sin(angle) * amplitude);
    }
  }
}

}  // namespace hadal
