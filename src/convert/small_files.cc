#include "convert/small_files.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "formats/checksum_file.h"

namespace hadal {

namespace fs = std::filesystem;

Status CopySmallFiles(const std::string& from, const std::string& to) {
  constexpr uintmax_t kMaxBytes = uintmax_t{1} << 28;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    const bool is_other = extension == ".safetensors" || extension == ".bin" ||
                          extension == ".gguf" || extension == ".pt" || extension == ".partial" ||
                          name == "config.json" || name == "model.safetensors.index.json" ||
                          name == kChecksumFile || name.starts_with(".");
    if (is_other || !entry.is_regular_file(error) || entry.file_size(error) > kMaxBytes) continue;
    fs::copy_file(entry.path(), fs::path(to) / name, fs::copy_options::overwrite_existing, error);
    if (error) return Status::Io(fmt::format("{}/{}: {}", to, name, error.message()));
  }
  if (error) return Status::Io(fmt::format("{}: {}", from, error.message()));
  return Status::Ok();
}

}  // namespace hadal
