#include "apps/model_path.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

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

}  // namespace

std::string BundledModelPath() { return BundledPath("tiny"); }

std::string BundledCalibrationPath() { return BundledPath("calibration/texts.json"); }

Result<std::string> ModelFolderPath(const std::string& path) {
  if (path.empty()) return BundledModelPath();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return path;
  if (!fs::exists(status)) {
    return Status::NotFound(
        fmt::format("{}: expected a model folder or file, found nothing", path));
  }
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? std::string(".") : folder.string();
}

}  // namespace hadal
