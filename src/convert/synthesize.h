// A checkpoint of a true shape with random weights, so that speed can be measured without a
// download. Written as it is made: memory does not grow with the model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/status.h"
#include "tensor/block_layout.h"

namespace hadal {

struct SynthOptions {
  std::string shape = {};                   // of ReadModelShape
  int num_layers = 0;                       // 0: the shape's; fewer keep one mixture layer at least
  int num_experts = 0;                      // 0: the shape's
  bool has_mtp = true;                      // false: without the layer that the shape may have
  QuantFormat format = QuantFormat::kBF16;  // or kF8Block128, or a grouped format
  int group_size = 32;
  bool has_zero_points = false;
  uint64_t seed = 1;
  int num_threads = 0;  // 0: all usable cores
  int64_t shard_bytes = 4'000'000'000;
};

struct SynthReport {
  int num_tensors = 0, num_files = 0;
  int64_t num_bytes = 0;       // of weights
  int64_t num_parameters = 0;  // MTP included
};

// Called with bytes written and to be written in all; an error ends the work.
using ByteProgress = std::function<Status(int64_t done, int64_t total)>;

// The config that such a checkpoint has. kInvalidArgument or kCorrupt: options that make no model.
Result<Json> SynthConfig(const SynthOptions& options);

// Bytes of all weights of such a checkpoint. Errors as of SynthConfig.
Result<int64_t> SynthWeightBytes(const SynthOptions& options);

// Writes config.json and the weights into `folder`, which exists. Values are such that activations
// stay of the order of 1: matrices keep the size of their input, what a layer adds to the residual
// stream shrinks with the square root of their number, gains are near 1. The copies that a
// published MTP layer has of embedding and head are left out; the main ones stand in.
Result<SynthReport> WriteSynthModel(const SynthOptions& options, const std::string& folder,
                                    const ByteProgress& progress);

}  // namespace hadal
