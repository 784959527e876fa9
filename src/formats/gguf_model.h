// A model in GGUF files, opened and checked: its parts mapped, its keys read as a config, its
// tensors under the names of the published layout.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/gguf_config.h"
#include "formats/gguf_tensors.h"
#include "sys/mapped_file.h"

namespace hadal {

struct GgufModel {
  uint32_t version = 0;
  std::vector<std::string> paths;  // of the parts, in order
  std::vector<MappedFile> files;
  GgufConfig config;
  GgufTensors tensors;
};

// `path` is the first part, or the only file. Errors as ParseGguf and ReadGgufConfig; kCorrupt for
// parts that do not belong together.
Result<GgufModel> OpenGgufModel(const std::string& path);

}  // namespace hadal
