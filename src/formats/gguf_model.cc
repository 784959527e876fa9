#include "formats/gguf_model.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "formats/gguf.h"
#include "formats/gguf_keys.h"
#include "formats/gguf_path.h"

namespace hadal {
namespace {

constexpr int64_t kMaxParts = 10000;

// What a part says of itself; a file that is the only one says nothing.
struct SplitKeys {
  int number = 0, count = 1;
  std::optional<int64_t> num_tensors;
};

Result<SplitKeys> ReadSplitKeys(const GgufFile& file, const std::string& path) {
  const GgufKeys keys(file, "split.", path);
  SplitKeys split;
  ASSIGN_OR_RETURN(const auto number, keys.Int("no", 0, kMaxParts - 1));
  ASSIGN_OR_RETURN(const auto count, keys.Int("count", 0, kMaxParts));
  ASSIGN_OR_RETURN(split.num_tensors, keys.Int("tensors.count", 0, INT32_MAX));
  split.number = static_cast<int>(number.value_or(0));
  split.count = std::max(1, static_cast<int>(count.value_or(1)));
  return split;
}

Status CheckPart(const SplitKeys& found, int part_idx, int num_parts, const std::string& path) {
  if (found.number != part_idx) {
    return Status::Corrupt(
        fmt::format("{}: split.no: expected {}, found {}", path, part_idx, found.number));
  }
  if (found.count != num_parts) {
    return Status::Corrupt(
        fmt::format("{}: split.count: expected {} as in the first part, found {}", path, num_parts,
                    found.count));
  }
  return Status::Ok();
}

Status CheckPartsAreThere(const std::vector<std::string>& paths) {
  std::vector<std::string> missing;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      missing.push_back(std::filesystem::path(path).filename().string());
    }
  }
  if (missing.empty()) return Status::Ok();
  constexpr size_t kMaxListed = 8;
  const size_t shown = std::min(missing.size(), kMaxListed);
  return Status::Corrupt(fmt::format(
      "{}: parts: expected {}, found {}; missing: {}{}", paths[0], paths.size(),
      paths.size() - missing.size(),
      fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      missing.size() > shown ? " and more" : ""));
}

}  // namespace

Result<GgufModel> OpenGgufModel(const std::string& path) {
  GgufModel model;
  std::vector<GgufFile> parsed;
  std::vector<GgufTensor> tensors;
  SplitKeys split;
  model.paths.push_back(path);
  for (size_t i = 0; i < model.paths.size(); ++i) {
    const std::string& part_path = model.paths[i];
    ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(part_path));
    model.files.push_back(std::move(file));
    ASSIGN_OR_RETURN(GgufFile part, ParseGguf(model.files.back().bytes(), part_path));
    ASSIGN_OR_RETURN(const SplitKeys found, ReadSplitKeys(part, part_path));
    if (i == 0) {
      split = found;
      for (int next = 1; next < split.count; ++next) {
        ASSIGN_OR_RETURN(std::string next_path, GgufPartPath(path, next, split.count));
        model.paths.push_back(std::move(next_path));
      }
      RETURN_IF_ERROR(CheckPartsAreThere(model.paths));
    }
    RETURN_IF_ERROR(CheckPart(found, static_cast<int>(i), split.count, model.paths[i]));
    RETURN_IF_ERROR(
        AddGgufTensors(part.tensors, static_cast<int>(i), model.paths[i], &model.tensors));
    tensors.insert(tensors.end(), part.tensors.begin(), part.tensors.end());
    parsed.push_back(std::move(part));
  }
  if (split.count > 1 && split.num_tensors &&
      *split.num_tensors != static_cast<int64_t>(tensors.size())) {
    return Status::Corrupt(fmt::format("{}: split.tensors.count: expected {} tensors, found {}",
                                       path, *split.num_tensors, tensors.size()));
  }
  model.version = parsed[0].version;
  ASSIGN_OR_RETURN(model.config, ReadGgufConfig(parsed[0], tensors, path));
  const Json& config = model.config.config;
  if (config["num_nextn_predict_layers"] > 0) {
    AddMissingMtpNorm(config["num_hidden_layers"].get<int>(), &model.tensors);
  }
  return model;
}

}  // namespace hadal
