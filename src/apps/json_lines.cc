#include "apps/json_lines.h"

#include <iostream>

#include <fmt/format.h>

namespace hadal {

Status ForEachInputLine(
    const std::function<Status(std::string_view text, const std::string& what)>& take) {
  std::string text;
  for (int64_t number = 1; std::getline(std::cin, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    RETURN_IF_ERROR(take(text, fmt::format("standard input: line {}", number)));
    std::cout.flush();
    if (!std::cout) return Status::Io("standard output: expected to write a line, found it closed");
  }
  return Status::Ok();
}

void PrintJsonLine(const Json& value) {
  std::cout << value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) << '\n';
}

}  // namespace hadal
