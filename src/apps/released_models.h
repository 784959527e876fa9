// The published DeepSeek models: what they are called, and which shape they have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor/block_layout.h"

namespace hadal {

struct ReleasedModel {
  const char* repo;    // "deepseek-ai/DeepSeek-V2-Lite"
  const char* shape;   // of ReadModelShape
  QuantFormat format;  // as published: kBF16 or kF8Block128
};

const std::vector<ReleasedModel>& ReleasedModels();

// By repository, by its name without "deepseek-ai/", or also without "DeepSeek-"; in any case of
// letters. Null when there is none.
const ReleasedModel* FindReleasedModel(std::string_view name);

}  // namespace hadal
