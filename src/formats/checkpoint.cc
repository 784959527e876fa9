#include "formats/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/quote.h"
#include "formats/gguf_model.h"
#include "formats/gguf_path.h"
#include "formats/model_folder.h"
#include "formats/safetensors.h"
#include "formats/weight_index.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSingleName = "model.safetensors";
constexpr int64_t kMaxIndexBytes = 256 << 20;  // V3's has 9 MB
constexpr size_t kMaxListed = 8;               // names in one message

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// "a, b and 3 more".
std::string ShortList(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMaxListed);
  std::string list = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) list += fmt::format(" and {} more", names.size() - shown);
  return list;
}

// Why a folder is not a checkpoint, with what lies there instead.
Status NoWeights(const fs::path& folder) {
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string extension = it->path().extension().string();
    if (extension == ".gguf" || extension == ".safetensors" || extension == ".bin" ||
        extension == ".pt" || extension == ".pth") {
      others.push_back(Quoted(it->path().filename().string()));
    }
  }
  std::sort(others.begin(), others.end());
  const std::string found = others.empty() ? "no weights" : ShortList(others);
  return Status::NotFound(
      fmt::format("{}: weights: expected {}, {} with its shards, or a GGUF model, found {}",
                  folder.string(), kSingleName, kIndexName, found));
}

std::string_view FormText(GgufMlaForm form) {
  switch (form) {
    case GgufMlaForm::kNone:
      return "";
    case GgufMlaForm::kLegacy:
      return "attn_kv_b";
    case GgufMlaForm::kSplit:
      return "attn_k_b and attn_v_b";
    case GgufMlaForm::kBoth:
      return "attn_kv_b beside attn_k_b and attn_v_b";
  }
  return "";
}

}  // namespace

struct Checkpoint::State {
  std::string path, config_path;
  ModelFolder folder;
  CheckpointNotes notes;
  std::vector<std::string> file_paths;
  std::vector<MappedFile> files;
  std::vector<TensorInfo> tensors;
  std::unordered_map<std::string_view, int> tensor_of;  // into `tensors`; keys are their names

  Status OpenIndex(const std::string& index_path);
  Status OpenShards(const WeightIndex& index, const std::string& index_path);
  Status OpenSingle(const std::string& file_path);
  Status OpenGguf(const std::string& first_path);
  void SortTensors();
};

Status Checkpoint::State::OpenSingle(const std::string& file_path) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(file_path));
  ASSIGN_OR_RETURN(tensors, ParseSafetensors(file.bytes(), file_path));
  file_paths.push_back(file_path);
  files.push_back(std::move(file));
  return Status::Ok();
}

Status Checkpoint::State::OpenIndex(const std::string& index_path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path, kMaxIndexBytes));
  ASSIGN_OR_RETURN(const WeightIndex index, ParseWeightIndex(text, index_path));
  const fs::path base(folder.folder);
  std::vector<std::string> missing;
  std::vector<bool> is_there;
  for (const std::string& name : index.files) {
    file_paths.push_back((base / name).string());
    is_there.push_back(Exists(file_paths.back()));
    if (!is_there.back()) missing.push_back(Quoted(name));
  }
  if (!missing.empty()) {
    const auto num_found =
        std::count_if(index.file_of.begin(), index.file_of.end(),
                      [&](const auto& item) { return is_there[static_cast<size_t>(item.second)]; });
    return Status::Corrupt(
        fmt::format("{}: shards: expected {} tensors in {} files, found {} in {}; missing: {}",
                    index_path, index.file_of.size(), index.files.size(), num_found,
                    index.files.size() - missing.size(), ShortList(missing)));
  }
  return OpenShards(index, index_path);
}

Status Checkpoint::State::OpenShards(const WeightIndex& index, const std::string& index_path) {
  tensors.reserve(index.file_of.size());
  for (size_t i = 0; i < file_paths.size(); ++i) {
    ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(file_paths[i]));
    ASSIGN_OR_RETURN(std::vector<TensorInfo> shard, ParseSafetensors(file.bytes(), file_paths[i]));
    for (TensorInfo& tensor : shard) {
      tensor.file_idx = static_cast<int>(i);
      const auto listed = index.file_of.find(tensor.name);
      if (listed == index.file_of.end() || listed->second != tensor.file_idx) continue;
      tensors.push_back(std::move(tensor));
    }
    files.push_back(std::move(file));
  }
  if (tensors.size() == index.file_of.size()) return Status::Ok();

  SortTensors();
  std::vector<std::string> missing;
  for (const auto& [name, file] : index.file_of) {
    if (tensor_of.contains(name)) continue;
    missing.push_back(
        fmt::format("{} in {}", Quoted(name), index.files[static_cast<size_t>(file)]));
  }
  std::sort(missing.begin(), missing.end());
  return Status::Corrupt(fmt::format(
      "{}: weight_map: expected {} tensors in {} shards, found {}; missing: {}", index_path,
      index.file_of.size(), files.size(), tensors.size(), ShortList(missing)));
}

Status Checkpoint::State::OpenGguf(const std::string& first_path) {
  ASSIGN_OR_RETURN(GgufModel model, OpenGgufModel(first_path));
  file_paths = std::move(model.paths);
  files = std::move(model.files);
  tensors = std::move(model.tensors.tensors);
  const fs::path parent = fs::path(first_path).parent_path();
  folder.folder = parent.empty() ? std::string(".") : parent.string();
  folder.config = std::move(model.config.config);
  config_path = first_path;
  notes = {.container = "gguf",
           .form = std::string(FormText(model.tensors.mla_form)),
           .supplied = std::move(model.config.supplied),
           .warnings = std::move(model.config.warnings)};
  SortTensors();
  // Two names of the file may mean the same.
  const auto same =
      std::adjacent_find(tensors.begin(), tensors.end(),
                         [](const TensorInfo& a, const TensorInfo& b) { return a.name == b.name; });
  if (same == tensors.end()) return Status::Ok();
  return Status::Corrupt(fmt::format("{}: tensor {}: expected once, found twice, under two names",
                                     first_path, Quoted(same->name)));
}

void Checkpoint::State::SortTensors() {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  tensor_of.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensor_of.emplace(tensors[i].name, static_cast<int>(i));
  }
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  ASSIGN_OR_RETURN(const std::optional<std::string> gguf, FindGgufModel(path));
  if (gguf) {
    RETURN_IF_ERROR(state->OpenGguf(*gguf));
    return std::unique_ptr<Checkpoint>(new Checkpoint(std::move(state)));
  }
  ASSIGN_OR_RETURN(state->folder, ReadModelFolder(path));
  state->config_path = (fs::path(state->folder.folder) / "config.json").string();
  const fs::path base(state->folder.folder);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (Exists(base / kIndexName)) {
      RETURN_IF_ERROR(state->OpenIndex((base / kIndexName).string()));
    } else if (Exists(base / kSingleName)) {
      RETURN_IF_ERROR(state->OpenSingle((base / kSingleName).string()));
    } else {
      return NoWeights(base);
    }
  } else if (fs::path(path).filename() == kIndexName) {
    RETURN_IF_ERROR(state->OpenIndex(path));
  } else {
    RETURN_IF_ERROR(state->OpenSingle(path));
  }
  if (state->tensor_of.empty()) state->SortTensors();
  return std::unique_ptr<Checkpoint>(new Checkpoint(std::move(state)));
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::~Checkpoint() = default;

std::span<const TensorInfo> Checkpoint::tensors() const { return state_->tensors; }

const TensorInfo* Checkpoint::Find(std::string_view name) const {
  const auto it = state_->tensor_of.find(name);
  return it == state_->tensor_of.end() ? nullptr
                                       : &state_->tensors[static_cast<size_t>(it->second)];
}

const std::vector<std::string>& Checkpoint::files() const { return state_->file_paths; }
const std::string& Checkpoint::path() const { return state_->path; }
const std::string& Checkpoint::folder() const { return state_->folder.folder; }
const Json& Checkpoint::config() const { return state_->folder.config; }
const std::string& Checkpoint::config_path() const { return state_->config_path; }
const CheckpointNotes& Checkpoint::notes() const { return state_->notes; }
const Json& Checkpoint::generation_config() const { return state_->folder.generation_config; }

void Checkpoint::DropPages(std::span<const std::byte> part) const {
  for (const MappedFile& file : state_->files) file.DropPages(part);
}

}  // namespace hadal
