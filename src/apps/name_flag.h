// Flags whose values are names.
#pragma once

#include <map>
#include <string>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace hadal {

// For an option of an enum or a bool: takes one of the names and shows them in --help. `names` must
// outlive the command.
template <class Value>
CLI::Validator OneOf(const std::map<std::string, Value>& names) {
  std::string list;
  for (const auto& [name, value] : names) list += (list.empty() ? "" : "|") + name;
  CLI::Validator validator;
  validator.description(list).operation([&names, list](std::string& text) {
    const auto found = names.find(text);
    if (found == names.end()) return fmt::format("expected {}, found {}", list, text);
    if constexpr (std::is_enum_v<Value>) {
      text = std::to_string(static_cast<int>(found->second));
    } else {
      text = found->second ? "true" : "false";
    }
    return std::string();
  });
  return validator;
}

}  // namespace hadal
