// What becomes of each tensor when a model is converted (convert_checkpoint.h).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "convert/convert_checkpoint.h"
#include "formats/checkpoint.h"
#include "formats/weight_unpacker.h"
#include "model/weight_lookup.h"

namespace hadal {

struct ConvertItem {
  enum class Action {
    kCopy,    // the bytes as they are
    kTiles,   // exactly the same values, as tiles of `shape`
    kFloats,  // exactly the same values, as float32
    kRound,   // to tiles of `shape`
  };
  Action action = Action::kCopy;
  std::string name;
  int rows = 0, cols = 0;  // cols 0: a vector
  FoundWeight source;
  GroupShape shape = {};
  std::string what;  // for the report: "Q4_0 -> int4, groups of 32"
  int spec_idx = 0;
  int scales_spec_idx = -1;  // of FP8

  bool is_exact() const { return action < Action::kRound; }
};

struct ConvertPlan {
  std::vector<ConvertItem> items;
  std::vector<SafetensorsSpec> specs;
  std::vector<std::string> dropped;
};

// Reads scales, zero points and eight-bit codes to see what is exact. Errors as ConvertCheckpoint.
Result<ConvertPlan> PlanConversion(const Checkpoint& checkpoint, const ModelConfig& config,
                                   bool may_requantize, WeightUnpacker* unpacker);

}  // namespace hadal
