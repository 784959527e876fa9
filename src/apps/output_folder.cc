#include "apps/output_folder.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace hadal {
namespace fs = std::filesystem;

Status MakeOutputFolder(const std::string& path, bool may_overwrite) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (!is_folder && fs::exists(path, error)) {
    return Status::InvalidArgument(fmt::format("{}: expected a folder, found a file", path));
  }
  if (is_folder && !may_overwrite) {
    const bool is_empty = fs::is_empty(path, error);
    if (error) return Status::Io(fmt::format("{}: {}", path, error.message()));
    if (!is_empty) {
      return Status::InvalidArgument(
          fmt::format("{}: expected an empty folder (or --force), found files in it", path));
    }
  }
  fs::create_directories(path, error);
  if (error) return Status::Io(fmt::format("{}: {}", path, error.message()));
  return Status::Ok();
}

}  // namespace hadal
