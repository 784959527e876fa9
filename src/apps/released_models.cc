#include "apps/released_models.h"

namespace hadal {
namespace {

constexpr QuantFormat kWide = QuantFormat::kBF16, kFp8 = QuantFormat::kF8Block128;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

// Specification, 1.1 and 1.2: models of one shape differ in their weights and chat layouts only.
const std::vector<ReleasedModel>& ReleasedModels() {
  static const std::vector<ReleasedModel> models = {
      {"deepseek-ai/DeepSeek-V2-Lite", "v2-lite", kWide},
      {"deepseek-ai/DeepSeek-V2-Lite-Chat", "v2-lite", kWide},
      {"deepseek-ai/DeepSeek-Coder-V2-Lite-Base", "v2-lite", kWide},
      {"deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", "v2-lite", kWide},
      {"deepseek-ai/DeepSeek-V2", "v2", kWide},
      {"deepseek-ai/DeepSeek-V2-Chat", "v2", kWide},
      {"deepseek-ai/DeepSeek-V2-Chat-0628", "v2", kWide},
      {"deepseek-ai/DeepSeek-Coder-V2-Base", "v2", kWide},
      {"deepseek-ai/DeepSeek-Coder-V2-Instruct", "v2", kWide},
      {"deepseek-ai/DeepSeek-Coder-V2-Instruct-0724", "v2", kWide},
      {"deepseek-ai/DeepSeek-V2.5", "v2", kWide},
      {"deepseek-ai/DeepSeek-V2.5-1210", "v2", kWide},
      {"deepseek-ai/DeepSeek-V3-Base", "v3", kFp8},
      {"deepseek-ai/DeepSeek-V3", "v3", kFp8},
      {"deepseek-ai/DeepSeek-V3-0324", "v3", kFp8},
      {"deepseek-ai/DeepSeek-R1-Zero", "v3", kFp8},
      {"deepseek-ai/DeepSeek-R1", "v3", kFp8},
      {"deepseek-ai/DeepSeek-R1-0528", "v3", kFp8},
      {"deepseek-ai/DeepSeek-Prover-V2-671B", "v3", kFp8},
      {"deepseek-ai/DeepSeek-V3.1-Base", "v3", kFp8},
      {"deepseek-ai/DeepSeek-V3.1", "v3", kFp8},
      {"deepseek-ai/DeepSeek-V3.1-Terminus", "v3", kFp8},
      {"deepseek-ai/DeepSeek-V3.2-Exp-Base", "v3.2", kFp8},
      {"deepseek-ai/DeepSeek-V3.2-Exp", "v3.2", kFp8},
      {"deepseek-ai/DeepSeek-V3.2", "v3.2", kFp8},
      {"deepseek-ai/DeepSeek-V3.2-Speciale", "v3.2", kFp8},
  };
  return models;
}

const ReleasedModel* FindReleasedModel(std::string_view name) {
  const std::string wanted = Lower(name);
  for (const ReleasedModel& model : ReleasedModels()) {
    const std::string repo = Lower(model.repo);
    if (wanted == repo || "deepseek-ai/" + wanted == repo ||
        "deepseek-ai/deepseek-" + wanted == repo) {
      return &model;
    }
  }
  return nullptr;
}

}  // namespace hadal
