#include "formats/model_folder.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/json.h"
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
  ModelFolder folder;
  folder.folder = path;
  if (!fs::is_directory(status)) {
    const fs::path parent = fs::path(path).parent_path();
    folder.folder = parent.empty() ? std::string(".") : parent.string();
  }
  const fs::path base(folder.folder);
  ASSIGN_OR_RETURN(folder.config, ReadJsonObject((base / "config.json").string()));
  ASSIGN_OR_RETURN(folder.generation_config,
                   ReadJsonObject((base / "generation_config.json").string()));
  return folder;
}

}  // namespace hadal
