#include "formats/gguf_path.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/quote.h"
#include "formats/gguf.h"

namespace hadal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".gguf";

// "NAME-00002-of-00003.gguf" taken apart.
struct PartName {
  std::string_view stem;  // NAME
  int part = 0, count = 0;
};

std::optional<int> ParseFiveDigits(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (text.size() != 5 || error != std::errc() || rest != end || value < 1) return std::nullopt;
  return value;
}

std::optional<PartName> ParsePartName(std::string_view name) {
  constexpr size_t kTail = std::string_view("-00001-of-00001.gguf").size();
  if (name.size() <= kTail || !name.ends_with(kExtension)) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kTail);
  const auto part = ParseFiveDigits(tail.substr(1, 5)), count = ParseFiveDigits(tail.substr(10, 5));
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || !part || !count) return std::nullopt;
  return PartName{name.substr(0, name.size() - kTail), *part, *count};
}

std::string NameOfPart(std::string_view stem, int part, int count) {
  return fmt::format("{}-{:05}-of-{:05}{}", stem, part, count, kExtension);
}

bool HasGgufContent(const fs::path& path) {
  std::array<char, 4> head = {};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return IsGguf(std::as_bytes(std::span(head)));
}

Result<std::optional<std::string>> FindInFolder(const std::string& folder) {
  std::vector<std::string> models;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".safetensors")) return std::optional<std::string>();
    if (!name.ends_with(kExtension)) continue;
    const std::optional<PartName> part = ParsePartName(name);
    if (!part || part->part == 1) models.push_back(name);
  }
  if (models.empty()) return std::optional<std::string>();
  std::sort(models.begin(), models.end());
  if (models.size() > 1) {
    return Status::InvalidArgument(
        fmt::format("{}: GGUF models: expected one, or the path of one, found {} and {}", folder,
                    Quoted(models[0]), Quoted(models[1])));
  }
  return std::optional((fs::path(folder) / models[0]).string());
}

}  // namespace

Result<std::optional<std::string>> FindGgufModel(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return FindInFolder(path);
  if (!fs::is_regular_file(path, error)) return std::optional<std::string>();
  const std::string name = fs::path(path).filename().string();
  if (!name.ends_with(kExtension) && !HasGgufContent(path)) return std::optional<std::string>();
  const std::optional<PartName> part = ParsePartName(name);
  if (part && part->part != 1) {
    return Status::InvalidArgument(
        fmt::format("{}: part of a GGUF model: expected the first one, {}, found part {}", path,
                    Quoted(NameOfPart(part->stem, 1, part->count)), part->part));
  }
  return std::optional(path);
}

Result<std::string> GgufPartPath(const std::string& first, int part_idx, int num_parts) {
  const fs::path path(first);
  const std::string name = path.filename().string();
  const std::optional<PartName> part = ParsePartName(name);
  if (!part || part->part != 1 || part->count != num_parts) {
    return Status::Corrupt(
        fmt::format("{}: split.count: expected a file named NAME-00001-of-{:05}.gguf, found {}",
                    first, num_parts, Quoted(name)));
  }
  return (path.parent_path() / NameOfPart(part->stem, part_idx + 1, num_parts)).string();
}

}  // namespace hadal
