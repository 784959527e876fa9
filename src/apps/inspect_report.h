// What `hadal inspect` finds out about a checkpoint, before it is printed in one form or the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "model/model_config.h"
#include "model/parameter_count.h"
#include "model/weight_summary.h"
#include "text/chat_layout.h"

namespace hadal {

// What there is to say of a config whose weights are all there.
struct ModelReport {
  ModelConfig config;
  ParameterCount parameters;
  bool has_mtp = false;               // in the checkpoint
  int64_t cache_bytes_per_token = 0;  // of the main model; MTP keeps a layer more when it drafts
};

struct MemoryReport {
  int64_t total_bytes = 0, available_bytes = 0;  // 0: unknown
  bool fits = false;
  int64_t cache_tokens = 0;  // room beside the weights; 0 without a config
};

struct InspectReport {
  std::unique_ptr<Checkpoint> checkpoint;
  std::optional<ModelReport> model;      // nothing for a mere container
  std::optional<ChatLayoutChoice> chat;  // nothing without a tokenizer
  WeightSummary weights;
  MemoryReport memory;
  std::vector<std::string> warnings;  // what is known to be wrong, or not imitated

  // Stored bits of all weights, scales included, MTP's with them. REQUIRES: a model.
  double bits_per_weight() const;
};

// Opens and checks everything at `path`. A folder with config.json, model.safetensors or the index
// is a model, and then all of its weights must be there; anything else is a list of tensors.
Result<InspectReport> InspectCheckpoint(const std::string& path);

}  // namespace hadal
