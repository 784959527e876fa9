// How fast a model that is not there would run: what its steps read and compute, against the limits
// of this machine and the shares of them that the kernels were measured to reach.
#pragma once

#include <cstdint>
#include <string>

#include "apps/machine_limits.h"
#include "model/model_config.h"
#include "model/step_cost.h"
#include "model/weight_store.h"
#include "tensor/block_layout.h"

namespace hadal {

struct SpeedForecast {
  std::string what;  // "prefill" or "decode"
  int batch = 1, depth = 0, tokens = 1;
  double seconds = 0;  // of the whole prefill; of one decode step
  double tokens_per_s = 0;
  std::string bound_by;  // what takes most of it: "reading", "arithmetic" or "attention"
};

struct ForecastModel {
  const ModelConfig& config;
  const ModelWeights& weights;  // ImagineWeights will do
  CacheType cache_type = CacheType::kF32;
  bool is_grouped = false;  // INT8 or INT4: products of bytes
};

// One step of `batch` sequences after `depth` tokens each.
SpeedForecast ForecastDecode(const ForecastModel& model, const MachineLimits& limits, int batch,
                             int depth);

// A prompt of `tokens` after `depth` others, in steps of `chunk`.
SpeedForecast ForecastPrefill(const ForecastModel& model, const MachineLimits& limits, int tokens,
                              int depth, int chunk);

}  // namespace hadal
