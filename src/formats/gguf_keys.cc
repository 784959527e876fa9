#include "formats/gguf_keys.h"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/utf8.h"

namespace hadal {
namespace {

// A number that a writer held as a float, as the decimal it stands for: 1e-6 was meant, not
// 9.99999997e-7.
double DecimalOf(double value) {
  const auto narrow = static_cast<float>(value);
  if (!std::isfinite(narrow) || static_cast<double>(narrow) != value) return value;
  return std::strtod(fmt::format("{}", narrow).c_str(), nullptr);
}

}  // namespace

const GgufValue* GgufKeys::Find(std::string_view key) const {
  return file_.Find(prefix_ + std::string(key));
}

Status GgufKeys::Fault(std::string_view key, std::string_view expected,
                       std::string_view found) const {
  return Status::Corrupt(
      fmt::format("{}: {}{}: expected {}, found {}", what_, prefix_, key, expected, found));
}

Result<std::optional<int64_t>> GgufKeys::Int(std::string_view key, int64_t low,
                                             int64_t high) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<int64_t>();
  const std::optional<int64_t> number = value->AsInt();
  if (!number || *number < low || *number > high) {
    return Fault(key, fmt::format("an integer from {} to {}", low, high),
                 number ? std::to_string(*number) : "another value");
  }
  return number;
}

Result<std::optional<double>> GgufKeys::Number(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<double>();
  const std::optional<double> number = value->AsDouble();
  if (!number || !std::isfinite(*number)) return Fault(key, "a finite number", "another value");
  return std::optional(DecimalOf(*number));
}

Result<std::optional<bool>> GgufKeys::Bool(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<bool>();
  const std::optional<bool> flag = value->AsBool();
  if (!flag) return Fault(key, "true or false", "another value");
  return flag;
}

Result<std::optional<std::string>> GgufKeys::Text(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<std::string>();
  const std::optional<std::string_view> text = value->AsString();
  if (!text || !IsValidUtf8(*text)) return Fault(key, "a text in UTF-8", "another value");
  return std::optional(std::string(*text));
}

Result<int64_t> GgufKeys::RequiredInt(std::string_view key, int64_t low, int64_t high) const {
  ASSIGN_OR_RETURN(const std::optional<int64_t> value, Int(key, low, high));
  if (!value) return Fault(key, "an integer", "nothing");
  return *value;
}

Result<double> GgufKeys::RequiredNumber(std::string_view key) const {
  ASSIGN_OR_RETURN(const std::optional<double> value, Number(key));
  if (!value) return Fault(key, "a number", "nothing");
  return *value;
}

}  // namespace hadal
