#include "apps/units.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace hadal {
namespace {

std::string Scaled(int64_t number, const std::array<std::string_view, 5>& units) {
  auto value = static_cast<double>(number);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}{}", number, units[0]);
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, decimals, units[unit]);
}

}  // namespace

std::string FormatBytes(int64_t bytes) {
  return Scaled(bytes, {" bytes", " kB", " MB", " GB", " TB"});
}

std::string FormatCount(int64_t count) { return Scaled(count, {"", " k", " M", " B", " T"}); }

}  // namespace hadal
