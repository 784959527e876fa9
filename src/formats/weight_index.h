// model.safetensors.index.json: which shard holds which tensor. Specification, 2.9.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace hadal {

struct WeightIndex {
  std::vector<std::string> files;                // names beside the index, sorted, each once
  std::unordered_map<std::string, int> file_of;  // tensor name -> into files
};

// kCorrupt unless `text` is a JSON object whose "weight_map" maps each tensor name, once, to a
// plain file name: no path separator, no "..", no control character. `what` names the file in
// errors. "metadata" is not read: releases fill it with wrong sums.
Result<WeightIndex> ParseWeightIndex(std::string_view text, const std::string& what);

}  // namespace hadal
