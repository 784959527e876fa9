// Where the files of a GGUF model lie. A model is one file, or parts named
// NAME-00001-of-00003.gguf and so on, of which the first stands for all. Specification, 8.4.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace hadal {

// The first file of the GGUF model that `path` names: a GGUF file, or a folder that holds one model
// of that kind and no safetensors. Nothing for any other path. kInvalidArgument for a folder with
// several models, and for a part that is not the first.
Result<std::optional<std::string>> FindGgufModel(const std::string& path);

// Part `part_idx` (from 0) of `num_parts` of a model whose first part is `first`. kCorrupt when the
// name of `first` is not that of a first part of so many.
Result<std::string> GgufPartPath(const std::string& first, int part_idx, int num_parts);

}  // namespace hadal
