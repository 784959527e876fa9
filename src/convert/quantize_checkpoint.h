// A checkpoint with rounded weights out of one with wide or FP8 weights, tensor by tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "convert/feedback_rounder.h"
#include "convert/recipe.h"
#include "formats/safetensors_layout.h"

namespace hadal {

struct QuantizeOptions {
  std::string source, folder;  // from a model folder, into one that exists
  Recipe recipe;
  // Sequences of ids to weigh errors by; empty: by size alone.
  std::vector<std::vector<TokenId>> calibration;
  FeedbackOptions feedback;
  int num_threads = 0;  // 0: all usable cores
  std::string kernels = {};
  int64_t shard_bytes = kDefaultShardBytes;
};

struct QuantizeReport {
  int num_tensors = 0, num_files = 0, num_resumed = 0;  // resumed: done by an earlier run
  int num_left_out = 0;
  int64_t num_bytes = 0, source_bytes = 0;
  double bits_per_weight = 0.0;  // QuantizePlan::bits_per_weight
};

// Called with the weights done and in all; an error ends the work, which can be taken up again.
using QuantizeProgress = std::function<Status(int64_t done, int64_t total)>;

// Goes on where an earlier run with the same source and options ended. The result is read back and
// checked. Errors: of opening the source, of ResumableWriter, kCorrupt for a weight that is not
// finite, kInvalidArgument for a source that is quantised already or ids outside its vocabulary.
Result<QuantizeReport> QuantizeCheckpoint(const QuantizeOptions& options,
                                          const QuantizeProgress& progress);

}  // namespace hadal
