#include "formats/scheme_warnings.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/quote.h"

namespace hadal {
namespace {

// What a module is called that has this tensor of packed codes; nothing for any other tensor.
std::optional<std::string_view> ModuleOfCodes(const TensorInfo& tensor) {
  std::string_view name = tensor.name;
  for (const std::string_view suffix : {".weight_packed", ".qweight"}) {
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  }
  constexpr std::string_view kPlain = ".weight";
  if (tensor.dtype == DType::kI8 && name.ends_with(kPlain)) {
    return name.substr(0, name.size() - kPlain.size());
  }
  return std::nullopt;
}

// Literal pieces between ".*" of a regular expression; nothing when there is more to it.
std::optional<std::vector<std::string>> PiecesOf(std::string_view pattern) {
  std::vector<std::string> pieces(1);
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size() && pattern[i + 1] == '.') {
      pieces.back() += pattern[++i];
    } else if (c == '.' && i + 1 < pattern.size() && pattern[i + 1] == '*') {
      pieces.emplace_back();
      ++i;
    } else if (std::string_view(".*+?()[]{}|^$\\").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

// Patterns match from the start of a name on.
bool MatchesPieces(const std::vector<std::string>& pieces, std::string_view name) {
  if (!name.starts_with(pieces[0])) return false;
  size_t at = pieces[0].size();
  for (size_t i = 1; i < pieces.size(); ++i) {
    at = name.find(pieces[i], at);
    if (at == std::string_view::npos) return false;
    at += pieces[i].size();
  }
  return true;
}

bool Ignores(const PackedScheme& scheme, std::string_view entry, std::string_view module) {
  // AWQ lists parts of names.
  if (scheme.method == PackedMethod::kAwq) return module.find(entry) != std::string_view::npos;
  if (!entry.starts_with("re:")) return entry == module;
  const auto pieces = PiecesOf(entry.substr(3));
  return pieces && MatchesPieces(*pieces, module);
}

}  // namespace

std::vector<std::string> WarnOfScheme(const Checkpoint& checkpoint, const PackedScheme& scheme) {
  std::vector<std::string> warnings;
  if (scheme.method == PackedMethod::kNone) return warnings;
  if (scheme.asks_for_activations) {
    warnings.push_back(fmt::format(
        "the configuration asks for rounded activations, which is not imitated: weights are used "
        "as they are"));
  }
  int count = 0;
  std::string first;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const std::optional<std::string_view> module = ModuleOfCodes(tensor);
    if (!module) continue;
    const bool is_ignored = std::ranges::any_of(
        scheme.ignored, [&](const std::string& entry) { return Ignores(scheme, entry, *module); });
    if (is_ignored && count++ == 0) first = *module;
  }
  if (count > 0) {
    warnings.push_back(
        fmt::format("the configuration says that {} {} not packed, but the tensors are; the first "
                    "is {}",
                    count, count == 1 ? "module is" : "modules are", Quoted(first)));
  }
  return warnings;
}

}  // namespace hadal
