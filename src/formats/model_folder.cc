#include "formats/model_folder.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/json.h"
#include "formats/gguf_model.h"
#include "formats/gguf_path.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

constexpr int64_t kMaxConfigBytes = 16 << 20;

// A JSON object; null when there is no such file.
Result<Json> ReadJsonObject(const std::string& path) {
  Result<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (text.status().code() == StatusCode::kNotFound) return Json(nullptr);
  if (!text.ok()) return text.status();
  ASSIGN_OR_RETURN(Json value, ParseJson(text.value(), path));
  if (!value.is_object()) {
    return Status::Corrupt(
        fmt::format("{}: expected a JSON object, found {}", path, value.type_name()));
  }
  return value;
}

// Exports of old say how they are packed in a file beside config.json.
Status AddOldQuantization(const std::filesystem::path& base, Json* config) {
  if (!config->is_object() || HasValue(*config, "quantization_config")) return Status::Ok();
  ASSIGN_OR_RETURN(Json gptq, ReadJsonObject((base / "quantize_config.json").string()));
  if (HasValue(gptq, "bits")) {
    if (!HasValue(gptq, "quant_method")) gptq["quant_method"] = "gptq";
    (*config)["quantization_config"] = std::move(gptq);
    return Status::Ok();
  }
  ASSIGN_OR_RETURN(const Json awq, ReadJsonObject((base / "quant_config.json").string()));
  if (!HasValue(awq, "w_bit")) return Status::Ok();
  Json quantization = {{"quant_method", "awq"}, {"bits", awq["w_bit"]}};
  if (HasValue(awq, "q_group_size")) quantization["group_size"] = awq["q_group_size"];
  if (HasValue(awq, "version")) quantization["version"] = awq["version"];
  (*config)["quantization_config"] = std::move(quantization);
  return Status::Ok();
}

}  // namespace

Result<ModelFolder> ReadModelFolder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return Status::NotFound(
        fmt::format("{}: expected a model folder or file, found nothing", path));
  }
  if (error) return Status::Io(fmt::format("{}: {}", path, error.message()));
  ASSIGN_OR_RETURN(const std::optional<std::string> gguf, FindGgufModel(path));
  if (gguf) {
    ASSIGN_OR_RETURN(GgufModel model, OpenGgufModel(*gguf));
    const fs::path parent = fs::path(*gguf).parent_path();
    return ModelFolder{.folder = parent.empty() ? std::string(".") : parent.string(),
                       .config = std::move(model.config.config),
                       .generation_config = nullptr};
  }
  ModelFolder folder;
  folder.folder = path;
  if (!fs::is_directory(status)) {
    const fs::path parent = fs::path(path).parent_path();
    folder.folder = parent.empty() ? std::string(".") : parent.string();
  }
  const fs::path base(folder.folder);
  ASSIGN_OR_RETURN(folder.config, ReadJsonObject((base / "config.json").string()));
  RETURN_IF_ERROR(AddOldQuantization(base, &folder.config));
  ASSIGN_OR_RETURN(folder.generation_config,
                   ReadJsonObject((base / "generation_config.json").string()));
  return folder;
}

}  // namespace hadal
