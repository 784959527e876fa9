#include "base/json.h"

#include <cmath>

#include <fmt/format.h>

namespace hadal {
namespace {

constexpr int kMaxDepth = 128;

// Depth of `text` if it were valid JSON: brackets outside strings. Asked before parsing, because
// the parser recurses when it destroys what it built.
int BracketDepth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

Status Mismatch(std::string_view what, std::string_view key, std::string_view expected,
                const Json& found) {
  // All ASCII, so that a cut never leaves half a character.
  std::string shown = found.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  return Status::Corrupt(fmt::format("{}: {}: expected {}, found {}", what, key, expected, shown));
}

Result<const Json*> Find(const Json& object, std::string_view key, std::string_view what) {
  if (!object.is_object()) return Mismatch(what, key, "an object around it", object);
  const auto it = object.find(key);
  if (it == object.end()) {
    return Status::Corrupt(fmt::format("{}: {}: expected a value, found nothing", what, key));
  }
  return &*it;
}

}  // namespace

Result<Json> ParseJson(std::string_view text, std::string_view what) {
  if (const int depth = BracketDepth(text); depth > kMaxDepth) {
    return Status::Corrupt(fmt::format("{}: JSON nesting: expected at most {} levels, found {}",
                                       what, kMaxDepth, depth));
  }
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_discarded()) return value;
  // A second pass only to say where: the parser tells the place only by throwing.
  try {
    value = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return Status::Corrupt(
        fmt::format("{}: expected JSON, found a fault at byte {}", what, error.byte));
  } catch (const Json::exception&) {
    // The grammar holds, but a number is beyond what a double can hold.
    return Status::Corrupt(
        fmt::format("{}: expected JSON with numbers up to 1.8e308, found a larger one", what));
  }
  return Status::Corrupt(fmt::format("{}: expected JSON", what));
}

bool HasValue(const Json& object, std::string_view key) {
  if (!object.is_object()) return false;
  const auto it = object.find(key);
  return it != object.end() && !it->is_null();
}

Result<int64_t> ReadInt(const Json& object, std::string_view key, int64_t low, int64_t high,
                        std::string_view what) {
  ASSIGN_OR_RETURN(const Json* value, Find(object, key, what));
  const std::string expected = fmt::format("an integer from {} to {}", low, high);
  int64_t number = 0;
  if (value->is_number_unsigned()) {
    const auto wide = value->get<uint64_t>();
    if (wide > static_cast<uint64_t>(INT64_MAX)) return Mismatch(what, key, expected, *value);
    number = static_cast<int64_t>(wide);
  } else if (value->is_number_integer()) {
    number = value->get<int64_t>();
  } else if (value->is_number_float()) {
    // Some writers spell whole numbers as 8.0.
    const double real = value->get<double>();
    if (!(std::abs(real) < 9e15) || real != std::floor(real)) {
      return Mismatch(what, key, expected, *value);
    }
    number = static_cast<int64_t>(real);
  } else {
    return Mismatch(what, key, expected, *value);
  }
  if (number < low || number > high) return Mismatch(what, key, expected, *value);
  return number;
}

Result<double> ReadNumber(const Json& object, std::string_view key, std::string_view what) {
  ASSIGN_OR_RETURN(const Json* value, Find(object, key, what));
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return Mismatch(what, key, "a finite number", *value);
  }
  return value->get<double>();
}

Result<bool> ReadBool(const Json& object, std::string_view key, std::string_view what) {
  ASSIGN_OR_RETURN(const Json* value, Find(object, key, what));
  if (!value->is_boolean()) return Mismatch(what, key, "true or false", *value);
  return value->get<bool>();
}

Result<std::string> ReadString(const Json& object, std::string_view key, std::string_view what) {
  ASSIGN_OR_RETURN(const Json* value, Find(object, key, what));
  if (!value->is_string()) return Mismatch(what, key, "a string", *value);
  return value->get<std::string>();
}

Result<int64_t> ReadIntOr(const Json& object, std::string_view key, int64_t low, int64_t high,
                          int64_t absent, std::string_view what) {
  if (!HasValue(object, key)) return absent;
  return ReadInt(object, key, low, high, what);
}

Result<double> ReadNumberOr(const Json& object, std::string_view key, double absent,
                            std::string_view what) {
  if (!HasValue(object, key)) return absent;
  return ReadNumber(object, key, what);
}

Result<bool> ReadBoolOr(const Json& object, std::string_view key, bool absent,
                        std::string_view what) {
  if (!HasValue(object, key)) return absent;
  return ReadBool(object, key, what);
}

Result<std::string> ReadStringOr(const Json& object, std::string_view key, std::string_view absent,
                                 std::string_view what) {
  if (!HasValue(object, key)) return std::string(absent);
  return ReadString(object, key, what);
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hadal
