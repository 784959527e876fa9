// What `hadal bench` measures: steps of a model, each beside the machine's limits of that moment.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/machine_limits.h"
#include "base/status.h"
#include "runner/model_runner.h"

namespace hadal {

// One thing to measure. `tokens` of a prefill are the prompt's new tokens, of a decode the steps
// that are timed.
struct BenchCase {
  std::string what;  // "prefill" or "decode"
  int batch = 1, depth = 0, tokens = 0;
};

struct BenchResult {
  std::string what;  // "prefill", "decode", "load", "memory"
  int batch = 0, depth = 0, tokens = 0;
  double tokens_per_s = 0, median_s = 0;  // of the whole prefill; of one decode step
  int runs = 0;
  double bytes = 0, ops = 0;  // that it must move and compute; of memory the peak in bytes
  double bound_s = 0;         // what the machine's limits allow
  std::string bound_by;       // "reading", "arithmetic", or empty
  double share_of_bound = 0;  // bound_s / median_s
  MachineLimits limits;       // measured beside it
  // Seconds of one run by operation, the longest first; empty without --profile.
  std::vector<std::pair<std::string, double>> operations;
};

struct BenchModel {
  std::string path, model_type, kernels;
  int num_threads = 0;
  int64_t weight_bytes = 0, parameters_total = 0, parameters_active = 0;
  int64_t cache_bytes_per_token = 0;
  double cache_saving = 0;  // bytes of keys and values of all heads over those of the latents
  double bits_per_weight = 0;
};

struct BenchReport {
  std::string cpu;
  BenchModel model;
  MachineLimits limits;  // medians over the run
  std::vector<BenchResult> results;
};

// "quick", "prefill", "decode", "batch", "depth", "full". kInvalidArgument names them.
Result<std::vector<BenchCase>> CasesOfSuite(const std::string& suite);

struct BenchOptions {
  RunnerOptions runner;
  std::vector<BenchCase> cases;
  int repetitions = 3;
};

// Runs all cases that fit into the model's context; `progress` gets each result as it comes.
Result<BenchReport> RunBench(const BenchOptions& options,
                             const std::function<void(const BenchResult&)>& progress);

}  // namespace hadal
