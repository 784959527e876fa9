#include "text/pattern_family.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"

namespace hadal {
namespace {

using Range = std::pair<uint32_t, uint32_t>;  // both ends belong to it

// One thing that a pattern says: a code point, or an escape with a meaning (\s, \S, \p{L}).
struct Atom {
  uint32_t code_point = 0;
  std::string escape = {};  // not empty: the meaning, and code_point says nothing
  bool is_quoted = false;   // written with a backslash, so it is never syntax
};

class PatternReader {
 public:
  explicit PatternReader(std::string_view pattern) : rest_(pattern) {}

  bool done() const { return rest_.empty(); }
  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // True when the rest starts with `c` and something else than `then` follows.
  bool StartsWithNot(char c, char then) const {
    return rest_.size() >= 2 && rest_[0] == c && rest_[1] != then;
  }

  // Nothing at the end of the pattern and at an escape that is not understood.
  std::optional<Atom> Next() {
    if (rest_.empty()) return std::nullopt;
    if (rest_[0] == '\\') return NextEscape();
    const DecodedCodePoint point = DecodeCodePoint(rest_);
    rest_.remove_prefix(static_cast<size_t>(point.length));
    return Atom{.code_point = point.value};
  }

 private:
  std::optional<Atom> NextEscape() {
    if (rest_.size() < 2) return std::nullopt;
    const char c = rest_[1];
    rest_.remove_prefix(2);
    switch (c) {
      case 'n':
        return Atom{.code_point = '\n', .is_quoted = true};
      case 'r':
        return Atom{.code_point = '\r', .is_quoted = true};
      case 't':
        return Atom{.code_point = '\t', .is_quoted = true};
      case 's':
      case 'S':
        return Atom{.escape = std::string("\\") + c};
      case 'p':
        return NextProperty();
      case 'x':
      case 'u':
        return NextHex(c == 'u' ? 4 : 2);
      default:
        break;
    }
    if (static_cast<uint8_t>(c) >= 0x80 || std::isalnum(static_cast<uint8_t>(c)) != 0) {
      return std::nullopt;
    }
    return Atom{.code_point = static_cast<uint8_t>(c), .is_quoted = true};
  }

  std::optional<Atom> NextProperty() {
    const size_t close = rest_.find('}');
    if (rest_.empty() || rest_[0] != '{' || close == std::string_view::npos) return std::nullopt;
    Atom atom{.escape = "\\p" + std::string(rest_.substr(0, close + 1))};
    rest_.remove_prefix(close + 1);
    return atom;
  }

  // \uHHHH, \xHH, \x{H...}
  std::optional<Atom> NextHex(size_t num_digits) {
    std::string_view digits = rest_.substr(0, num_digits);
    size_t taken = num_digits;
    if (!rest_.empty() && rest_[0] == '{') {
      const size_t close = rest_.find('}');
      if (close == std::string_view::npos || close > 7) return std::nullopt;
      digits = rest_.substr(1, close - 1);
      taken = close + 1;
    }
    if (digits.empty() || taken > rest_.size()) return std::nullopt;
    uint32_t value = 0;
    for (const char c : digits) {
      if (std::isxdigit(static_cast<uint8_t>(c)) == 0) return std::nullopt;
      const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    rest_.remove_prefix(taken);
    return Atom{.code_point = value, .is_quoted = true};
  }

  std::string_view rest_;
};

std::string ClassText(bool is_negated, std::vector<Range> ranges,
                      std::vector<std::string> escapes) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  std::sort(escapes.begin(), escapes.end());
  std::string text = is_negated ? "[^" : "[";
  for (const auto& [first, last] : merged) text += fmt::format("{:X}-{:X} ", first, last);
  for (const std::string& escape : escapes) text += escape;
  return text + "]";
}

// The class after its opening bracket.
std::optional<std::string> ReadClass(PatternReader* reader) {
  const bool is_negated = reader->Take('^');
  std::vector<Range> ranges;
  std::vector<std::string> escapes;
  while (!reader->Take(']')) {
    const std::optional<Atom> atom = reader->Next();
    if (!atom || (!atom->is_quoted && atom->code_point == '[')) return std::nullopt;
    if (!atom->escape.empty()) {
      escapes.push_back(atom->escape);
      continue;
    }
    Range range{atom->code_point, atom->code_point};
    if (reader->StartsWithNot('-', ']')) {
      reader->Take('-');
      const std::optional<Atom> last = reader->Next();
      if (!last || !last->escape.empty() || last->code_point < range.first) return std::nullopt;
      range.second = last->code_point;
    }
    ranges.push_back(range);
  }
  return ClassText(is_negated, std::move(ranges), std::move(escapes));
}

std::optional<std::string> Canonical(std::string_view pattern) {
  PatternReader reader(pattern);
  std::string text;
  while (!reader.done()) {
    if (reader.Take('[')) {
      const std::optional<std::string> char_class = ReadClass(&reader);
      if (!char_class) return std::nullopt;
      text += *char_class;
      continue;
    }
    const std::optional<Atom> atom = reader.Next();
    if (!atom) return std::nullopt;
    if (!atom->escape.empty()) {
      text += atom->escape;
    } else if (atom->is_quoted || atom->code_point >= 0x80) {
      text += fmt::format("<{:X}>", atom->code_point);
    } else {
      text += static_cast<char>(atom->code_point);
    }
  }
  return text;
}

// The flagged code points of our own table, as a class.
std::string TableClass(CodePointClass flag) {
  std::vector<Range> ranges;
  for (size_t i = 0; i + 1 < kCodePointRuns.size(); ++i) {
    if ((kCodePointRuns[i].value & flag) != 0) {
      ranges.emplace_back(kCodePointRuns[i].first, kCodePointRuns[i + 1].first - 1);
    }
  }
  return ClassText(/*is_negated=*/false, std::move(ranges), {});
}

// The same with escapes that any reader of patterns knows.
std::string TablePattern(CodePointClass flag) {
  std::string text = "[";
  for (size_t i = 0; i + 1 < kCodePointRuns.size(); ++i) {
    if ((kCodePointRuns[i].value & flag) == 0) continue;
    text += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", kCodePointRuns[i].first,
                        kCodePointRuns[i + 1].first - 1);
  }
  return text + "]+";
}

constexpr std::string_view kLineEnd = R"([\r\n])";
constexpr std::string_view kV3Digits = R"(\p{N}{1,3})";
constexpr std::string_view kV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
    R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

struct KnownPatterns {
  PreTokenizerFamily family;
  std::vector<std::string> patterns;  // canonical
};

std::vector<KnownPatterns> MakeKnownPatterns() {
  const std::string line_end = CanonicalPattern(kLineEnd);
  const std::string number = R"(\p{N})";
  const std::string llm_east = TableClass(kIsLlmEast) + "+";
  return {
      {PreTokenizerFamily::kDeepSeekV3,
       {CanonicalPattern(kV3Digits), TableClass(kIsV3East) + "+", CanonicalPattern(kV3Words)}},
      {PreTokenizerFamily::kDeepSeekLlm,
       {line_end, R"(\s?)" + TableClass(kIsLlmLetter) + "+",
        R"(\s?)" + TableClass(kIsLlmPunctuation) + "+", R"(\s+$)", llm_east, number}},
      {PreTokenizerFamily::kDeepSeekCoder,
       {line_end, R"(\s?\p{L}+)", R"(\s?\p{P}+)", llm_east, number}},
  };
}

}  // namespace

std::string CanonicalPattern(std::string_view pattern) {
  return Canonical(pattern).value_or(std::string(pattern));
}

std::vector<std::string> PublishedPatterns(PreTokenizerFamily family) {
  const std::string line_end(kLineEnd), number = R"(\p{N})";
  switch (family) {
    case PreTokenizerFamily::kDeepSeekV3:
      return {std::string(kV3Digits), TablePattern(kIsV3East), std::string(kV3Words)};
    case PreTokenizerFamily::kDeepSeekLlm:
      return {line_end,
              R"(\s?)" + TablePattern(kIsLlmLetter),
              R"(\s?)" + TablePattern(kIsLlmPunctuation),
              R"(\s+$)",
              TablePattern(kIsLlmEast),
              number};
    case PreTokenizerFamily::kDeepSeekCoder:
      return {line_end, R"(\s?\p{L}+)", R"(\s?\p{P}+)", TablePattern(kIsLlmEast), number};
  }
  return {};
}

Result<PreTokenizerFamily> RecognisePatterns(std::span<const std::string> patterns,
                                             std::string_view what) {
  std::vector<std::string> found;
  for (const std::string& pattern : patterns) found.push_back(CanonicalPattern(pattern));
  size_t most_equal = 0;  // how far the closest family agrees
  for (const KnownPatterns& known : MakeKnownPatterns()) {
    if (known.patterns == found) return known.family;
    const auto [mine, theirs] =
        std::mismatch(found.begin(), found.end(), known.patterns.begin(), known.patterns.end());
    most_equal = std::max(most_equal, static_cast<size_t>(mine - found.begin()));
  }
  const std::string shown =
      most_equal < patterns.size()
          ? fmt::format("pattern {} {:?}", most_equal + 1, patterns[most_equal])
          : fmt::format("only {} patterns", patterns.size());
  return Status::Unsupported(
      fmt::format("{}: pre_tokenizer: expected the patterns of deepseek-v3, deepseek-llm or "
                  "deepseek-coder, found {}",
                  what, shown));
}

}  // namespace hadal
