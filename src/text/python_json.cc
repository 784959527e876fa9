#include "text/python_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace hadal {
namespace {

constexpr int kMaxDepth = 128;  // as base/json.h

// nlohmann reads a number that does not fit as a double and refuses it when that overflows, so
// integers longer than this are cut out of the text first and put back by their rank.
constexpr size_t kMaxParsedDigits = 300;

struct LongInteger {
  size_t number_idx = 0;  // among all numbers of the text
  std::string_view digits;
};

bool IsInteger(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  return !token.empty() && token.find_first_not_of("0123456789") == std::string_view::npos &&
         !(token.size() > 1 && token[0] == '0');
}

// The text with "0" in the place of each long integer. What is not JSON stays not JSON.
std::string CutLongIntegers(std::string_view text, std::vector<LongInteger>* cut) {
  std::string out;
  size_t kept = 0, num_numbers = 0;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      ++i;
    } else if (text[i] == '-' || (text[i] >= '0' && text[i] <= '9')) {
      const size_t end = std::min(text.find_first_not_of("0123456789+-.eE", i), text.size());
      const std::string_view token = text.substr(i, end - i);
      if (token.size() > kMaxParsedDigits && IsInteger(token)) {
        cut->push_back({num_numbers, token});
        out.append(text.substr(kept, i - kept)).push_back('0');
        kept = end;
      }
      ++num_numbers;
      i = end;
    } else {
      ++i;
    }
  }
  return out.append(text.substr(kept));
}

// Builds the document while reading. A handler of our own because only here the parser still shows
// the text of a number.
class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  DocumentBuilder(std::string_view what, std::vector<LongInteger> cut)
      : what_(what), cut_(std::move(cut)) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override {
    ++num_numbers_;
    return Add(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    const size_t number_idx = num_numbers_++;
    if (num_put_back_ < cut_.size() && cut_[num_put_back_].number_idx == number_idx) {
      return Add(Digits(cut_[num_put_back_++].digits));
    }
    return Add(value);
  }
  bool number_float(number_float_t value, const string_t& spelling) override {
    ++num_numbers_;
    if (spelling.find_first_of(".eE") != std::string::npos) return Add(value);
    return Add(Digits(spelling));  // an integer that did not fit
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // never in JSON text
  bool start_object(size_t) override { return Open(Json::object()); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    // A repeated key keeps its first place and gets its last value, as in a Python dict.
    slot_ = &(*open_.back())[value];
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const bool is_range = error.id == 406;
    status_ = Status::Corrupt(
        is_range ? fmt::format("{}: expected a number that a double can hold, "
                               "found one out of range at byte {}",
                               what_, position)
                 : fmt::format("{}: expected JSON, found a fault at byte {}", what_, position));
    return false;
  }

  Status TakeStatus() {
    if (!status_.ok()) return status_;
    return Status::Corrupt(fmt::format("{}: expected JSON", what_));
  }
  Json TakeRoot() { return std::move(root_); }

 private:
  static Json Digits(std::string_view digits) {
    return Json::binary(std::vector<uint8_t>(digits.begin(), digits.end()));
  }
  bool Add(Json value) {
    *Place() = std::move(value);
    return true;
  }
  Json* Place() {
    if (open_.empty()) return &root_;
    if (open_.back()->is_object()) return slot_;
    open_.back()->push_back(nullptr);
    return &open_.back()->back();
  }
  bool Open(Json container) {
    if (static_cast<int>(open_.size()) >= kMaxDepth) {
      status_ = Status::Corrupt(fmt::format(
          "{}: JSON nesting: expected at most {} levels, found more", what_, kMaxDepth));
      return false;
    }
    Json* place = Place();
    *place = std::move(container);
    open_.push_back(place);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  std::string what_;
  Status status_;
  Json root_;
  // Pointers stay good: a container only grows after the containers inside it are closed.
  std::vector<Json*> open_;
  Json* slot_ = nullptr;  // where the value of the last key goes
  std::vector<LongInteger> cut_;
  size_t num_numbers_ = 0, num_put_back_ = 0;
};

void AppendString(std::string_view text, std::string* out) {
  out->push_back('"');
  AppendPythonJsonEscaped(text, out);
  out->push_back('"');
}

// Recursive: the depth is bounded where the value was parsed.
void AppendValue(const Json& value, std::string* out) {
  switch (value.type()) {
    case Json::value_t::object: {
      out->push_back('{');
      bool is_first = true;
      for (const auto& [key, member] : value.items()) {
        if (!is_first) out->append(", ");
        is_first = false;
        AppendString(key, out);
        out->append(": ");
        AppendValue(member, out);
      }
      out->push_back('}');
      return;
    }
    case Json::value_t::array: {
      out->push_back('[');
      bool is_first = true;
      for (const Json& element : value) {
        if (!is_first) out->append(", ");
        is_first = false;
        AppendValue(element, out);
      }
      out->push_back(']');
      return;
    }
    case Json::value_t::string:
      return AppendString(value.get_ref<const std::string&>(), out);
    case Json::value_t::number_float:
      out->append(PythonFloatRepr(value.get<double>()));
      return;
    case Json::value_t::binary: {
      const auto& digits = value.get_binary();
      out->append(digits.begin(), digits.end());
      return;
    }
    default:  // null, booleans, integers: spelled as everywhere
      out->append(value.dump());
  }
}

}  // namespace

Result<Json> ParseJsonKeepingIntegers(std::string_view text, std::string_view what) {
  std::vector<LongInteger> cut;
  const std::string shortened = CutLongIntegers(text, &cut);
  DocumentBuilder builder(what, std::move(cut));
  if (!Json::sax_parse(shortened, &builder)) return builder.TakeStatus();
  return builder.TakeRoot();
}

std::string DumpPythonJson(const Json& value) {
  std::string out;
  AppendValue(value, &out);
  return out;
}

void AppendPythonJsonEscaped(std::string_view text, std::string* out) {
  for (const char c : text) {
    switch (c) {
      case '"':
        out->append("\\\"");
        break;
      case '\\':
        out->append("\\\\");
        break;
      case '\b':
        out->append("\\b");
        break;
      case '\f':
        out->append("\\f");
        break;
      case '\n':
        out->append("\\n");
        break;
      case '\r':
        out->append("\\r");
        break;
      case '\t':
        out->append("\\t");
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out->append(fmt::format("\\u{:04x}", static_cast<unsigned>(c)));
        } else {
          out->push_back(c);
        }
    }
  }
}

std::string PythonFloatRepr(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  // Shortest digits in the form d.ddde[+-]xx; only the placing of the point is Python's own.
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + 2, end, exponent);  // behind its sign, which is always there
  if (text[e + 1] == '-') exponent = -exponent;
  if (exponent < -4 || exponent > 15) return std::string(text);

  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  const std::string sign = text[0] == '-' ? "-" : "";
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace hadal
