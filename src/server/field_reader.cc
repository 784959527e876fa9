#include "server/field_reader.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"

namespace hadal {

std::string DescribeJson(const Json* value) {
  if (value == nullptr) return "nothing";
  switch (value->type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return fmt::format("a list of {}", value->size());
    case Json::value_t::string:
      return fmt::format("the text {}", Quoted(value->get_ref<const std::string&>(), 40));
    case Json::value_t::boolean:
      return value->get<bool>() ? "true" : "false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return value->dump();
    default:
      return "a number beyond 64 bits";
  }
}

Status FieldMismatch(std::string_view path, std::string_view expected, const Json* found) {
  return Status::InvalidArgument(
      fmt::format("{}: expected {}, found {}", path, expected, DescribeJson(found)));
}

FieldReader::FieldReader(const Json& object, std::string path)
    : object_(object), path_(std::move(path)) {
  HADAL_CHECK(object.is_object());
}

const Json* FieldReader::Find(std::string_view key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

std::string FieldReader::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

Status FieldReader::Mismatch(std::string_view key, std::string_view expected) const {
  return FieldMismatch(PathOf(key), expected, Find(key));
}

Status FieldReader::Number(std::string_view key, double low, double high, float* out) const {
  const Json* value = Find(key);
  if (value == nullptr) return Status::Ok();
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= low && number <= high))
    return Mismatch(key, fmt::format("a number from {} to {}", low, high));
  *out = static_cast<float>(number);
  return Status::Ok();
}

Status FieldReader::Wide(std::string_view key, int64_t low, int64_t high, int64_t* out) const {
  const Json* value = Find(key);
  if (value == nullptr) return Status::Ok();
  const std::string expected = fmt::format("a whole number from {} to {}", low, high);
  int64_t number = 0;
  if (value->is_number_unsigned()) {
    if (value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return Mismatch(key, expected);
    number = value->get<int64_t>();
  } else if (value->is_number_integer()) {
    number = value->get<int64_t>();
  } else {
    const double real = value->is_number() ? value->get<double>() : NAN;
    if (!(std::abs(real) < 9e15) || real != std::floor(real)) return Mismatch(key, expected);
    number = static_cast<int64_t>(real);
  }
  if (number < low || number > high) return Mismatch(key, expected);
  *out = number;
  return Status::Ok();
}

Status FieldReader::Integer(std::string_view key, int64_t low, int64_t high, int* out) const {
  int64_t wide = *out;
  RETURN_IF_ERROR(Wide(key, low, high, &wide));
  *out = static_cast<int>(wide);
  return Status::Ok();
}

Status FieldReader::Flag(std::string_view key, bool* out) const {
  const Json* value = Find(key);
  if (value == nullptr) return Status::Ok();
  if (!value->is_boolean()) return Mismatch(key, "true or false");
  *out = value->get<bool>();
  return Status::Ok();
}

Status FieldReader::Text(std::string_view key, std::string* out) const {
  const Json* value = Find(key);
  if (value == nullptr) return Status::Ok();
  if (!value->is_string()) return Mismatch(key, "a string");
  *out = value->get<std::string>();
  return Status::Ok();
}

Status FieldReader::Texts(std::string_view key, std::vector<std::string>* out) const {
  const Json* value = Find(key);
  if (value == nullptr) return Status::Ok();
  if (value->is_string()) {
    out->push_back(value->get<std::string>());
    return Status::Ok();
  }
  if (!value->is_array()) return Mismatch(key, "a string or a list of strings");
  for (size_t i = 0; i < value->size(); ++i) {
    if (!(*value)[i].is_string())
      return FieldMismatch(fmt::format("{}[{}]", PathOf(key), i), "a string", &(*value)[i]);
    out->push_back((*value)[i].get<std::string>());
  }
  return Status::Ok();
}

Result<const Json*> FieldReader::Object(std::string_view key) const {
  const Json* value = Find(key);
  if (value != nullptr && !value->is_object()) return Mismatch(key, "an object");
  return value;
}

Result<const Json*> FieldReader::List(std::string_view key) const {
  const Json* value = Find(key);
  if (value != nullptr && !value->is_array()) return Mismatch(key, "a list");
  return value;
}

Status FieldReader::Only(std::string_view key, std::initializer_list<Json> allowed) const {
  const Json* value = Find(key);
  if (value == nullptr) return Status::Ok();
  std::string names;
  for (const Json& one : allowed) {
    if (*value == one) return Status::Ok();
    names += (names.empty() ? "" : " or ") + DumpJson(one);
  }
  return Mismatch(key, names);
}

Status FieldReader::Refuse(std::string_view key, std::string_view why) const {
  if (Find(key) == nullptr) return Status::Ok();
  return Status::InvalidArgument(fmt::format("{}: {}", PathOf(key), why));
}

}  // namespace hadal
