#include "formats/weight_index.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/quote.h"
#include "formats/dom_text.h"

namespace hadal {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxFileNameBytes = 255;  // what file systems take

// Names come from the file, so they must not lead out of its folder.
bool IsPlainFileName(std::string_view name) {
  if (name.empty() || name.size() > kMaxFileNameBytes || name == ".") return false;
  if (name.find("..") != std::string_view::npos) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || static_cast<unsigned char>(c) < ' ' || c == '\x7F';
  });
}

// The one "weight_map" of the index.
Result<dom::object> FindWeightMap(dom::object index, const std::string& what) {
  std::optional<dom::element> found;
  for (const auto field : index) {
    if (field.key != "weight_map") continue;
    if (found) {
      return Status::Corrupt(fmt::format("{}: weight_map: expected once, found twice", what));
    }
    found = field.value;
  }
  dom::object map;
  if (!found || found->get(map) != simdjson::SUCCESS) {
    return Status::Corrupt(fmt::format("{}: weight_map: expected an object of file names, found {}",
                                       what, found ? ShownValue(*found) : std::string("nothing")));
  }
  if (map.begin() == map.end()) {
    return Status::Corrupt(
        fmt::format("{}: weight_map: expected at least one tensor, found none", what));
  }
  return map;
}

}  // namespace

Result<WeightIndex> ParseWeightIndex(std::string_view text, const std::string& what) {
  const simdjson::padded_string padded(text);  // the parser reads past the end of its input
  dom::parser parser;
  dom::object root;
  simdjson::error_code error = parser.allocate(padded.size(), kMaxDepth);
  if (error == simdjson::SUCCESS) error = parser.parse(padded).get(root);
  if (error != simdjson::SUCCESS) {
    return Status::Corrupt(
        fmt::format("{}: expected a JSON object, found: {}", what, simdjson::error_message(error)));
  }
  ASSIGN_OR_RETURN(const dom::object map, FindWeightMap(root, what));

  WeightIndex index;
  index.file_of.reserve(map.size());
  std::map<std::string, int, std::less<>> numbers;  // file name -> order of first appearance
  for (const auto field : map) {
    std::string_view file;
    if (field.value.get(file) != simdjson::SUCCESS || !IsPlainFileName(file)) {
      return Status::Corrupt(fmt::format("{}: weight_map: {}: expected a plain file name, found {}",
                                         what, Quoted(field.key), ShownValue(field.value)));
    }
    auto number = numbers.find(file);
    if (number == numbers.end()) {
      number = numbers.emplace(file, static_cast<int>(numbers.size())).first;
    }
    if (!index.file_of.emplace(field.key, number->second).second) {
      return Status::Corrupt(
          fmt::format("{}: weight_map: {}: expected once, found twice", what, Quoted(field.key)));
    }
  }
  std::vector<int> sorted(numbers.size());
  for (const auto& [name, number] : numbers) {
    sorted[static_cast<size_t>(number)] = static_cast<int>(index.files.size());
    index.files.push_back(name);
  }
  for (auto& [name, file] : index.file_of) file = sorted[static_cast<size_t>(file)];
  return index;
}

}  // namespace hadal
