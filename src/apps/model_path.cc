#include "apps/model_path.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

namespace hadal {
namespace fs = std::filesystem;

std::string BundledModelPath() {
  std::vector<fs::path> places;
  if (const char* dir = std::getenv("HADAL_MODELS_DIR"); dir != nullptr && *dir != '\0') {
    places.emplace_back(fs::path(dir) / "tiny");
  }
  std::error_code ignored;  // without /proc the places beside the executable are left out
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  if (!executable.empty()) {
    const fs::path folder = executable.parent_path();
    places.push_back(folder / "../../models/tiny");  // build/release/hadal of a source tree
    places.push_back(folder / "models/tiny");        // an unpacked archive
    places.push_back(folder / "../share/hadal/models/tiny");  // an installed prefix
  }
  places.emplace_back(HADAL_SOURCE_DIR "/models/tiny");
  for (const fs::path& place : places) {
    if (fs::is_directory(place, ignored)) return place.lexically_normal().string();
  }
  return places.back().string();
}

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
