// How many numbers a model has, and how many of them one token meets. From the config alone.
#pragma once

#include <array>
#include <cstdint>

#include "model/model_config.h"
#include "model/weight_names.h"

namespace hadal {

struct ParameterCount {
  int64_t total = 0;   // the main model, embedding and head included, the MTP layer not
  int64_t active = 0;  // what one token meets: of the routed experts num_experts_per_tok
  int64_t embedding = 0;
  int64_t mtp = 0;         // the MTP layer's own, without copies of embedding and head
  int64_t mtp_active = 0;  // what one of its steps meets
  std::array<int64_t, kNumWeightParts> by_part = {};  // of total, by WeightPart

  // The number that model cards print: a look-up of one row is not work.
  int64_t active_without_embedding() const { return active - embedding; }
};

// Norms and correction biases count, scales of FP8 blocks do not. Specification, 1.2.
ParameterCount CountParameters(const ModelConfig& config);

}  // namespace hadal
