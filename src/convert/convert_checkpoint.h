// A model that another program packed (GGUF, compressed-tensors, GPTQ, AWQ) as a folder in hadal's
// own formats.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/safetensors_layout.h"
#include "model/model_config.h"

namespace hadal {

struct ConvertOptions {
  std::string source, folder;  // from a model, into a folder that exists
  // Round what no format of hadal's holds exactly, instead of refusing it.
  bool may_requantize = false;
  int num_threads = 0;  // of ConvertCheckpoint at least 1
  int64_t shard_bytes = kDefaultShardBytes;
};

struct ConvertReport {
  // Tensors by what became of them, "Q4_0 -> int4, groups of 32": those that keep every value, and
  // those that were rounded.
  std::map<std::string, int> exact, rounded;
  std::vector<std::string> dropped;  // names of tensors that the model has no role for
  int num_tensors = 0, num_files = 0, num_resumed = 0;
  int64_t num_bytes = 0, source_bytes = 0;
};

// Called with the tensors done and in all; an error ends the work, which can be taken up again.
using ConvertProgress = std::function<Status(int64_t done, int64_t total)>;

// One tensor at a time, on all threads. What the formats allow is exact: plain types as they are,
// codes with a scale of binary16 for each group as tiles, kv_b and the embedding as float32.
// kUnsupported, naming the first tensor and how many there are, when something else would have to
// be rounded and may not be; then nothing is written. Other errors: of opening the source and of
// ResumableWriter; kInvalidArgument for a source that is in hadal's formats already.
Result<ConvertReport> ConvertCheckpoint(const ConvertOptions& options,
                                        const ConvertProgress& progress);

}  // namespace hadal
