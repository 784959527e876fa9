// How the bytes of a checkpoint are spread, and whether they hold numbers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "model/model_config.h"

namespace hadal {

struct WeightSummary {
  int64_t num_bytes = 0;
  std::vector<std::pair<std::string, int64_t>> bytes_by_dtype;  // largest first
  // By WeightPartName, scales with their weights; "mtp" is the whole MTP layer, "unused" what the
  // model has no role for. Parts without bytes are left out. Empty without a config.
  std::vector<std::pair<std::string, int64_t>> bytes_by_part;
  // Of each part the bytes by type, largest first; scales count with the codes that they belong to.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, int64_t>>>> types_by_part;
  int num_unused = 0;        // tensors
  std::string first_unused;  // a name, for the curious
};

// `config` may be null.
WeightSummary SummarizeWeights(const Checkpoint& checkpoint, const ModelConfig* config);

// Reads every float of every tensor. kCorrupt names the tensors that hold NaN or infinity, the
// first such element of each, and how many there are.
Status CheckWeightsAreFinite(const Checkpoint& checkpoint);

}  // namespace hadal
