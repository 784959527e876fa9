#include "apps/inspect_report.h"

#include <filesystem>

#include "model/cache_size.h"
#include "model/weight_store.h"
#include "sys/machine.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

// A single file that is not a whole checkpoint has no model, whatever lies beside it.
bool IsModel(const Checkpoint& checkpoint) {
  namespace fs = std::filesystem;
  if (checkpoint.config().is_null()) return false;
  std::error_code error;
  const fs::path path(checkpoint.path());
  return fs::is_directory(path, error) || path.filename() == "model.safetensors" ||
         path.filename() == "model.safetensors.index.json";
}

Result<ModelReport> ReportModel(const Checkpoint& checkpoint) {
  const std::string what = (std::filesystem::path(checkpoint.folder()) / "config.json").string();
  ModelReport report;
  ASSIGN_OR_RETURN(report.config, ModelConfig::Parse(checkpoint.config(), what));
  ASSIGN_OR_RETURN(const ModelWeights weights, BindWeights(checkpoint, report.config));
  report.has_mtp = weights.mtp.has_value();
  report.parameters = CountParameters(report.config);
  report.cache_bytes_per_token = CacheBytesPerToken(report.config, report.config.num_hidden_layers);
  return report;
}

MemoryReport ReportMemory(const InspectReport& report) {
  MemoryReport memory;
  memory.total_bytes = TotalMemoryBytes();
  memory.available_bytes = AvailableMemoryBytes();
  const int64_t rest = memory.available_bytes - report.weights.num_bytes;
  memory.fits = rest > 0;
  if (report.model && memory.fits) {
    memory.cache_tokens = rest / report.model->cache_bytes_per_token;
    memory.fits = memory.cache_tokens > 0;
  }
  return memory;
}

Result<std::optional<ChatLayoutChoice>> ReportChat(const std::string& folder,
                                                   const std::string& model_type) {
  const auto tokenizer = Tokenizer::Load(folder);
  if (tokenizer.status().code() == StatusCode::kNotFound) return std::optional<ChatLayoutChoice>();
  if (!tokenizer.ok()) return tokenizer.status();
  const bool has_think_tokens = (*tokenizer)->FindAddedToken("<think>").has_value();
  return std::optional(
      ChooseChatLayout((*tokenizer)->chat_template(), model_type, has_think_tokens));
}

}  // namespace

Result<InspectReport> InspectCheckpoint(const std::string& path) {
  InspectReport report;
  ASSIGN_OR_RETURN(report.checkpoint, Checkpoint::Open(path));
  if (IsModel(*report.checkpoint)) {
    ASSIGN_OR_RETURN(report.model, ReportModel(*report.checkpoint));
    ASSIGN_OR_RETURN(report.chat,
                     ReportChat(report.checkpoint->folder(), report.model->config.model_type));
  }
  report.weights =
      SummarizeWeights(*report.checkpoint, report.model ? &report.model->config : nullptr);
  report.memory = ReportMemory(report);
  return report;
}

}  // namespace hadal
