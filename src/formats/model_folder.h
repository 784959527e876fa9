// The small files beside the weights, without opening any weight: what `tokenize`, `render` and
// `parse` need.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"

namespace hadal {

struct ModelFolder {
  std::string folder;
  // config.json; null when absent. With quantize_config.json or quant_config.json of old exports as
  // its quantization_config where it has none.
  Json config;
  Json generation_config;  // generation_config.json; null when absent
};

// `path` is a folder or a file in it; of a GGUF model the config is what its keys say. kNotFound
// when it does not exist; kCorrupt when a file is not a JSON object.
Result<ModelFolder> ReadModelFolder(const std::string& path);

}  // namespace hadal
