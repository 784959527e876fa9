// A model made ready to run: backend, weights, cache and scratch, each in the size that the options
// ask for.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/status.h"
#include "model/activations.h"
#include "model/latent_cache.h"
#include "model/model.h"
#include "runner/model_runner.h"

namespace hadal {

// What a runner will ask of the model beside plain steps.
struct LoadedModelNeeds {
  int max_logit_rows = 1;  // of one step
  bool runs_mtp = false;   // then the module gets its layer of the cache
};

// What the option means for a model.
CacheType TypeOfCache(const RunnerOptions& options, const Checkpoint& checkpoint,
                      const ModelConfig& config);

// Whether products with INT8 and INT4 weights take float32 inputs.
bool KeepsFloatActivations(const RunnerOptions& options, const Checkpoint& checkpoint,
                           const ModelConfig& config);

struct LoadedModel {
  std::unique_ptr<Backend> backend;  // outlives what was made with it
  std::unique_ptr<Model> model;
  LatentCache cache;
  Activations activations;
  int max_context_tokens = 0;
  CacheType cache_type = CacheType::kF32;

  // Errors as for CreateRunner.
  static Result<LoadedModel> Load(const RunnerOptions& options, const LoadedModelNeeds& needs);
};

}  // namespace hadal
