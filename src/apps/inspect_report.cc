#include "apps/inspect_report.h"

#include <filesystem>

#include "base/json.h"
#include "formats/scheme_warnings.h"
#include "model/cache_size.h"
#include "model/weight_lookup.h"
#include "sys/machine.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

// A single file that is not a whole checkpoint has no model, whatever lies beside it.
bool IsModel(const Checkpoint& checkpoint) {
  namespace fs = std::filesystem;
  if (checkpoint.config().is_null()) return false;
  if (checkpoint.notes().container == "gguf") return true;
  std::error_code error;
  const fs::path path(checkpoint.path());
  return fs::is_directory(path, error) || path.filename() == "model.safetensors" ||
         path.filename() == "model.safetensors.index.json";
}

Result<ModelReport> ReportModel(const Checkpoint& checkpoint) {
  ModelReport report;
  ASSIGN_OR_RETURN(report.config,
                   ModelConfig::Parse(checkpoint.config(), checkpoint.config_path()));
  ASSIGN_OR_RETURN(const FoundWeights found, FindWeights(checkpoint, report.config));
  report.has_mtp = found.has_mtp;
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

double InspectReport::bits_per_weight() const {
  const int64_t count = model->parameters.total + (model->has_mtp ? model->parameters.mtp : 0);
  return 8.0 * static_cast<double>(weights.num_bytes) / static_cast<double>(count);
}

Result<InspectReport> InspectCheckpoint(const std::string& path) {
  InspectReport report;
  ASSIGN_OR_RETURN(report.checkpoint, Checkpoint::Open(path));
  if (IsModel(*report.checkpoint)) {
    ASSIGN_OR_RETURN(report.model, ReportModel(*report.checkpoint));
    const bool is_gguf = report.checkpoint->notes().container == "gguf";
    ASSIGN_OR_RETURN(report.chat,
                     ReportChat(is_gguf ? report.checkpoint->path() : report.checkpoint->folder(),
                                report.model->config.model_type));
  }
  report.weights =
      SummarizeWeights(*report.checkpoint, report.model ? &report.model->config : nullptr);
  report.memory = ReportMemory(report);
  report.warnings = report.checkpoint->notes().warnings;
  if (report.model) {
    for (std::string& text : WarnOfScheme(*report.checkpoint, report.model->config.packed_scheme)) {
      report.warnings.push_back(std::move(text));
    }
  }
  return report;
}

}  // namespace hadal
