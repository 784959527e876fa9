// What `hadal plan` finds out, format by format, and how it is shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/machine_limits.h"
#include "apps/speed_forecast.h"
#include "base/json_fwd.h"
#include "model/model_config.h"

namespace hadal {

struct PlanRequest {
  std::string name;  // as people say it
  std::string repo;  // "org/name" on a hub; empty: none
  std::string path;  // of a model that is here; empty: none
  ModelConfig config;
  QuantFormat published = QuantFormat::kBF16;
  int64_t published_bytes = 0;  // of its weights, MTP's included
  int64_t memory_bytes = 0;     // that it may take
  int64_t disk_bytes = 0;       // free where pulled models lie
  int context = 0, batch = 1;
  const ModelWeights* weights = nullptr;  // those of a model that is here; null: imagined
};

// The model in one format.
struct FormatPlan {
  QuantFormat format = QuantFormat::kBF16;
  const char* name = "";  // "bf16", "fp8", "int8", "int4"
  int64_t weight_bytes = 0, cache_bytes_per_token = 0;
  int64_t cache_bytes = 0;   // of the context of all sequences
  int64_t memory_bytes = 0;  // in all
  bool fits = false;
  int64_t context_that_fits = 0;         // tokens of each sequence
  std::vector<SpeedForecast> forecasts;  // prefill and decode, at the start and at the context
};

struct PlanReport {
  PlanRequest request;
  std::string cpu, kernels;
  int num_threads = 0;
  MachineLimits limits;
  std::vector<std::string> given_limits;  // those that were told, not measured, as JSON names them
  std::vector<FormatPlan> formats;        // the widest first
  int best_idx = -1;                      // the widest that fits; -1: none
  std::vector<std::string> commands;      // to have and to run it
  int64_t parameters_total = 0, parameters_active = 0;
};

// As published, INT8 and INT4. The cache is what `--cache-type auto` takes.
std::vector<FormatPlan> PlanFormats(const PlanRequest& request, const MachineLimits& limits);

// The commands that bring the model onto this machine in a format and run it.
std::vector<std::string> PlanCommands(const PlanRequest& request, const FormatPlan& format);

std::string PlanAsText(const PlanReport& report);
Json PlanAsJson(const PlanReport& report);

}  // namespace hadal
