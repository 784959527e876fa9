// What a step must read and compute, from the model's weights and the step's shape alone: the
// numerators of every bound that speed is held against.
#pragma once

#include <cstdint>

#include "model/model_config.h"
#include "model/weight_store.h"

namespace hadal {

// Sequences of equal shape.
struct StepShape {
  int num_sequences = 1;
  int tokens_per_sequence = 1;
  int num_cached = 0;           // positions before the new tokens, of each sequence
  int logit_rows = 1;           // in all
  bool is_absorbed = true;      // generated tokens; false: tokens of a prompt
  int64_t cache_row_bytes = 0;  // of one token and layer
};

struct StepCost {
  int64_t weight_bytes = 0;  // every matrix that takes part, once; of routed experts those that at
                             // least one token is expected to choose
  int64_t cache_bytes = 0;   // rows that attention reads, once per sequence
  int64_t weight_ops = 0;    // products with weights; a multiplication and an addition count as two
  int64_t attention_ops = 0;  // scores and weighted values
  double bytes() const { return static_cast<double>(weight_bytes + cache_bytes); }
  double ops() const { return static_cast<double>(weight_ops + attention_ops); }
};

// Bytes of a matrix as it lies in memory, scales included.
int64_t MatrixBytes(const QuantizedMatrix& matrix);

// Bytes of all weights in memory, the MTP layer's not included; tied matrices count once.
int64_t WeightBytes(const ModelWeights& weights);

// What any step reads, to be multiplied with what happened in it.
struct ReadCost {
  int64_t step_bytes = 0;       // all matrices but routed experts and the embedding, once a step
  int64_t expert_bytes = 0;     // one routed expert of one layer; the mean, should they differ
  int64_t cache_row_bytes = 0;  // one position in all layers
};

// cache_row_bytes: of one position and layer. The MTP layer is not included.
ReadCost CountReadCost(const ModelWeights& weights, int64_t cache_row_bytes);

// Tokens choose experts uniformly: of n experts, b tokens with k choices each are expected to meet
// n (1 - (1 - k / n)^b). Expanded attention computes keys and values of the cached positions anew
// for each step. Specification, 3.3 and 3.7.
StepCost CostOfStep(const ModelConfig& config, const ModelWeights& weights, const StepShape& shape);

}  // namespace hadal
