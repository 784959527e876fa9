#include "apps/model_path.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/hub_flags.h"
#include "formats/gguf_path.h"
#include "hub/repo_name.h"

namespace hadal {
namespace fs = std::filesystem;

namespace {

// The first place where `name` lies among the bundled models, or the last place.
std::string BundledPath(const std::string& name) {
  std::vector<fs::path> places;
  if (const char* dir = std::getenv("HADAL_MODELS_DIR"); dir != nullptr && *dir != '\0') {
    places.push_back(fs::path(dir) / name);
  }
  std::error_code ignored;  // without /proc the places beside the executable are left out
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  if (!executable.empty()) {
    const fs::path folder = executable.parent_path();
    places.push_back(folder / "../../models" / name);  // build/release/hadal of a source tree
    places.push_back(folder / "models" / name);        // an unpacked archive
    places.push_back(folder / "../share/hadal/models" / name);  // an installed prefix
  }
  places.push_back(fs::path(HADAL_SOURCE_DIR "/models") / name);
  for (const fs::path& place : places) {
    if (fs::exists(place, ignored)) return place.lexically_normal().string();
  }
  return places.back().string();
}

// "org/name@revision/file": the name, and the file or "".
std::pair<std::string, std::string> SplitName(const std::string& path) {
  const size_t first = path.find('/');
  const size_t second = first == path.npos ? path.npos : path.find('/', first + 1);
  if (second == path.npos) return {path, ""};
  return {path.substr(0, second), path.substr(second + 1)};
}

// A GGUF model in parts is opened by its first.
bool IsLaterPart(const std::string& name) {
  const size_t of = name.rfind("-of-");
  return of != name.npos && of >= 5 && name.substr(of - 5, 5) != "00001";
}

// Of a folder that has no config.json; the folder itself where the choice is not clear.
std::string OnlyGguf(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  if (fs::exists(folder + "/config.json", error)) return folder;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".gguf" && !IsLaterPart(path.stem().string())) {
      found.push_back(path.string());
    }
  }
  return found.size() == 1 ? found[0] : folder;
}

}  // namespace

std::string LocateModel(const std::string& path) {
  std::error_code error;
  if (path.empty() || fs::exists(path, error)) return path;
  const auto [name, file] = SplitName(path);
  const Result<RepoName> repo = ParseRepoName(name);
  if (!repo.ok()) return path;
  const std::optional<std::string> folder = PulledModels().Find(*repo);
  if (!folder) return path;
  if (file.empty()) return OnlyGguf(*folder);
  return CheckRepoPath(file).ok() ? *folder + "/" + file : path;
}

std::string BundledModelPath() { return BundledPath("tiny"); }

std::string BundledCalibrationPath() { return BundledPath("calibration/texts.json"); }

Result<std::string> ModelFolderPath(const std::string& named) {
  if (named.empty()) return BundledModelPath();
  const std::string path = LocateModel(named);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return path;
  if (!fs::exists(status)) {
    const char* hint = ParseRepoName(path).ok() ? " (`hadal pull` brings a model by its name)" : "";
    return Status::NotFound(
        fmt::format("{}: expected a model folder or file, found nothing{}", path, hint));
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> gguf, FindGgufModel(path));
  if (gguf) return *gguf;
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? std::string(".") : folder.string();
}

}  // namespace hadal
