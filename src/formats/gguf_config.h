// The keys of a GGUF file of architecture deepseek2 or deepseek32 as a config.json. Specification,
// 8.2.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "formats/gguf.h"

namespace hadal {

struct GgufConfig {
  Json config;  // in the words of config.json
  // What the file leaves open and what stands in: "expert_group_count: 8, for 256 experts".
  std::vector<std::string> supplied;
  std::vector<std::string> warnings;  // about exports that are known to be bad
};

// `file` is the first part of the model, `tensors` are those of all parts, whose shapes
// help where keys are missing. kUnsupported for another architecture; kCorrupt with file and key.
Result<GgufConfig> ReadGgufConfig(const GgufFile& file, std::span<const GgufTensor> tensors,
                                  const std::string& what);

}  // namespace hadal
