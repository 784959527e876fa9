#include "apps/inspect_gguf.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "apps/json_lines.h"
#include "apps/units.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "formats/tensor_info.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

// Slowest axis first, as every other list of hadal.
std::vector<int64_t> ShapeOf(const GgufTensor& tensor) {
  return {tensor.sizes.rbegin(), tensor.sizes.rend()};
}

struct Totals {
  int64_t num_elements = 0, num_bytes = 0;
  std::map<std::string_view, int64_t> bytes_by_type;
};

Totals Sum(const GgufFile& file) {
  Totals totals;
  for (const GgufTensor& tensor : file.tensors) {
    const auto bytes = static_cast<int64_t>(tensor.bytes.size());
    totals.num_elements += tensor.num_elements();
    totals.num_bytes += bytes;
    totals.bytes_by_type[tensor.type.name] += bytes;
  }
  return totals;
}

std::string Architecture(const GgufFile& file) {
  const GgufValue* value = file.Find("general.architecture");
  const auto text = value == nullptr ? std::nullopt : value->AsString();
  return text ? RepairUtf8(*text) : std::string();
}

void PrintJson(const GgufFile& file, const std::string& file_name) {
  const Totals totals = Sum(file);
  Json out = Json::object();
  out["container"] = "gguf";
  out["gguf_version"] = file.version;
  out["architecture"] = Architecture(file);
  out["model_type"] = nullptr;
  out["parameters_total"] = totals.num_elements;
  out["num_keys"] = file.metadata.size();
  out["num_tensors"] = file.tensors.size();
  out["num_files"] = 1;
  out["weight_bytes"] = totals.num_bytes;
  out["bytes_by_dtype"] = Json::object();
  for (const auto& [type, bytes] : totals.bytes_by_type) {
    out["bytes_by_dtype"][std::string(type)] = bytes;
  }
  out["tensors"] = Json::array();
  for (const GgufTensor& tensor : file.tensors) {
    out["tensors"].push_back({{"name", tensor.name},
                              {"dtype", tensor.type.name},
                              {"shape", ShapeOf(tensor)},
                              {"ne", tensor.sizes},
                              {"bytes", tensor.bytes.size()},
                              {"file", file_name}});
  }
  PrintJsonLine(out);
}

void PrintTable(const GgufFile& file, const std::string& path) {
  const Totals totals = Sum(file);
  std::cout << fmt::format("{:<12} tensors of a GGUF file, version {}, architecture {}: {}\n",
                           "model", file.version, Quoted(Architecture(file)), path);
  std::cout << fmt::format("{:<12} {} in {} tensors, {} keys\n", "weights",
                           FormatBytes(totals.num_bytes), file.tensors.size(),
                           file.metadata.size());
  std::cout << fmt::format(
      "{:<12} a mere container: models have the architecture deepseek2 or deepseek32\n", "note");
  for (const GgufTensor& tensor : file.tensors) {
    std::cout << fmt::format("{:<40}  {:<8}  {:<16}  {:>9}\n", Quoted(tensor.name),
                             tensor.type.name, ShapeText(ShapeOf(tensor)),
                             FormatBytes(static_cast<int64_t>(tensor.bytes.size())));
  }
}

bool IsGgufPath(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  if (fs::path(path).extension() == ".gguf") return true;
  std::array<char, 4> head = {};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return IsGguf(std::as_bytes(std::span(head)));
}

}  // namespace

bool IsMereGguf(const std::string& path) {
  if (!IsGgufPath(path)) return false;
  const Result<MappedFile> mapped = MappedFile::Open(path);
  if (!mapped.ok()) return true;
  const Result<GgufFile> file = ParseGguf(mapped.value().bytes(), path);
  if (!file.ok()) return true;
  const std::string architecture = Architecture(file.value());
  const bool is_deepseek = architecture == "deepseek2" || architecture == "deepseek32";
  return !is_deepseek || file.value().Find(architecture + ".block_count") == nullptr;
}

Status InspectGguf(const std::string& path, bool wants_json) {
  ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  ASSIGN_OR_RETURN(const GgufFile file, ParseGguf(mapped.bytes(), path));
  if (wants_json) {
    PrintJson(file, std::filesystem::path(path).filename().string());
  } else {
    PrintTable(file, path);
  }
  return Status::Ok();
}

}  // namespace hadal
