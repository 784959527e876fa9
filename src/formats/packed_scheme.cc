#include "formats/packed_scheme.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/json.h"
#include "base/quote.h"

namespace hadal {
namespace {

Status Unsupported(const std::string& what, std::string_view key, std::string_view expected,
                   std::string_view found) {
  return Status::Unsupported(
      fmt::format("{}: {}: expected {}, found {}", what, key, expected, Quoted(found)));
}

// A list of texts; anything else in it is passed over, since the tensors decide anyway.
std::vector<std::string> TextList(const Json& object, std::string_view key) {
  std::vector<std::string> texts;
  const auto it = object.find(std::string(key));
  if (it == object.end() || !it->is_array()) return texts;
  for (const Json& entry : *it) {
    if (entry.is_string()) texts.push_back(entry.get<std::string>());
  }
  return texts;
}

Result<PackedScheme> ParseCompressedTensors(const Json& quantization, const std::string& what) {
  PackedScheme scheme = {.method = PackedMethod::kCompressedTensors};
  scheme.ignored = TextList(quantization, "ignore");
  if (!HasValue(quantization, "config_groups")) return scheme;
  const Json& groups = quantization["config_groups"];
  if (!groups.is_object()) {
    return Status::Corrupt(
        fmt::format("{}: config_groups: expected an object, found {}", what, groups.type_name()));
  }
  for (const auto& [name, group] : groups.items()) {
    const std::string place = fmt::format("{}: config_groups: {}", what, Quoted(name));
    if (!group.is_object()) {
      return Status::Corrupt(
          fmt::format("{}: expected an object, found {}", place, group.type_name()));
    }
    scheme.asks_for_activations =
        scheme.asks_for_activations || HasValue(group, "input_activations");
    if (!HasValue(group, "weights")) continue;
    const Json& weights = group["weights"];
    ASSIGN_OR_RETURN(const std::string type, ReadStringOr(weights, "type", "int", place));
    ASSIGN_OR_RETURN(const int64_t bits, ReadIntOr(weights, "num_bits", 1, 64, 4, place));
    if (type != "int") return Unsupported(place, "weights.type", "int", type);
    if (bits != 4 && bits != 8) {
      return Unsupported(place, "weights.num_bits", "4 or 8", std::to_string(bits));
    }
  }
  return scheme;
}

// -1 in the file means whole rows.
Result<int> ReadGroupSize(const Json& quantization, const std::string& what) {
  ASSIGN_OR_RETURN(const int64_t size,
                   ReadIntOr(quantization, "group_size", -1, INT32_MAX, 128, what));
  if (size == 0) {
    return Status::Corrupt(
        fmt::format("{}: group_size: expected -1 or more than 0, found 0", what));
  }
  return size < 0 ? 0 : static_cast<int>(size);
}

Result<PackedScheme> ParseGptq(const Json& quantization, const std::string& what) {
  PackedScheme scheme = {.method = PackedMethod::kGptq};
  ASSIGN_OR_RETURN(const int64_t bits, ReadIntOr(quantization, "bits", 1, 64, 4, what));
  if (bits != 4 && bits != 8) return Unsupported(what, "bits", "4 or 8", std::to_string(bits));
  scheme.bits = static_cast<int>(bits);
  ASSIGN_OR_RETURN(scheme.group_size, ReadGroupSize(quantization, what));
  ASSIGN_OR_RETURN(const std::string format,
                   ReadStringOr(quantization, "checkpoint_format", "gptq", what));
  if (format != "gptq" && format != "gptq_v2") {
    return Unsupported(what, "checkpoint_format", "gptq or gptq_v2", format);
  }
  scheme.stores_zero_less_one = format == "gptq";
  return scheme;
}

Result<PackedScheme> ParseAwq(const Json& quantization, const std::string& what) {
  PackedScheme scheme = {.method = PackedMethod::kAwq, .stores_zero_less_one = false};
  ASSIGN_OR_RETURN(const int64_t bits, ReadIntOr(quantization, "bits", 1, 64, 4, what));
  if (bits != 4) return Unsupported(what, "bits", "4", std::to_string(bits));
  ASSIGN_OR_RETURN(scheme.group_size, ReadGroupSize(quantization, what));
  ASSIGN_OR_RETURN(std::string version, ReadStringOr(quantization, "version", "gemm", what));
  std::transform(version.begin(), version.end(), version.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (version != "gemm") return Unsupported(what, "version", "gemm", version);
  scheme.ignored = TextList(quantization, "modules_to_not_convert");
  return scheme;
}

}  // namespace

std::string_view PackedMethodName(PackedMethod method) {
  switch (method) {
    case PackedMethod::kNone:
      return "";
    case PackedMethod::kCompressedTensors:
      return "compressed-tensors";
    case PackedMethod::kGptq:
      return "GPTQ";
    case PackedMethod::kAwq:
      return "AWQ";
  }
  return "";
}

Result<std::optional<PackedScheme>> ParsePackedScheme(const Json& quantization,
                                                      const std::string& what) {
  ASSIGN_OR_RETURN(const std::string method, ReadStringOr(quantization, "quant_method", "", what));
  Result<PackedScheme> scheme = PackedScheme();
  if (method == "compressed-tensors") {
    scheme = ParseCompressedTensors(quantization, what);
  } else if (method == "gptq") {
    scheme = ParseGptq(quantization, what);
  } else if (method == "auto-round" || method == "intel/auto-round") {
    // Packs as GPTQ does, if it says so.
    ASSIGN_OR_RETURN(const std::string packing,
                     ReadStringOr(quantization, "packing_format", "", what));
    if (packing.find("gptq") == std::string::npos) {
      return Unsupported(what, "packing_format", "auto_round:auto_gptq", packing);
    }
    scheme = ParseGptq(quantization, what);
  } else if (method == "awq") {
    scheme = ParseAwq(quantization, what);
  } else {
    return std::optional<PackedScheme>();
  }
  if (!scheme.ok()) return scheme.status();
  return std::optional(std::move(scheme).value());
}

}  // namespace hadal
