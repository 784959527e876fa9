// The choices of the naive model: which experts (specification, 4.1 and 4.2) and which positions
// (6.3), each with how clear it was. Ties go to the lower index.
#pragma once

#include <vector>

#include "model/model_config.h"

namespace hadal {

struct NaiveExpertWeight {
  int expert = 0;
  double weight = 0;
};

void NaiveSoftmax(std::vector<double>* x);

// `logits` [n_routed_experts]. `clearest` becomes smaller where a choice was closer than it.
std::vector<NaiveExpertWeight> NaiveV2Gate(const ModelConfig& config,
                                           const std::vector<double>& logits, double* clearest);
std::vector<NaiveExpertWeight> NaiveV3Gate(const ModelConfig& config,
                                           const std::vector<double>& logits,
                                           const std::vector<double>& bias, double* clearest);

// Index scores of one query over positions 0 to n-1.
struct NaiveIndexScores {
  explicit NaiveIndexScores(int n) : values(n, 0.0), largest_dot(n, -1e300) {}

  // The min(k, n) best positions, ascending.
  std::vector<int> Best(int k, double* clearest) const;

  std::vector<double> values;
  // Largest q . k over the heads, before the ReLU: where it is negative the score is exactly 0, and
  // it tells how far from exactly 0 rounding would have to carry it.
  std::vector<double> largest_dot;
};

}  // namespace hadal
