#include "text/volatile_lines.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace hadal {
namespace {

constexpr size_t kMaxLineBytes = 200;
constexpr size_t kMaxLines = 40;  // at either end
constexpr size_t kMinHexDigits = 24;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Whether `pattern` stands at the start of `text`: d is a digit, x a hex digit, others themselves.
bool Matches(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) return false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool is_equal = pattern[i] == 'd'   ? IsDigit(text[i])
                          : pattern[i] == 'x' ? IsHex(text[i])
                                              : text[i] == pattern[i];
    if (!is_equal) return false;
  }
  return true;
}

// As Matches, and neither end lies within a word or number.
bool MatchesAlone(std::string_view line, size_t at, std::string_view pattern) {
  if (at > 0 && IsWordChar(line[at - 1])) return false;
  if (!Matches(line.substr(at), pattern)) return false;
  const size_t end = at + pattern.size();
  // 2025-11-30T12:34 goes on with a letter.
  return end == line.size() || !IsWordChar(line[end]) || line[end] == 'T';
}

// "November 30, 2025", "30 November 2025", "Nov 30 2025": a month with a year behind it.
bool HasMonthAndYear(std::string_view line) {
  static constexpr std::array<std::string_view, 12> kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (const std::string_view month : kMonths) {
    for (size_t at = line.find(month); at != line.npos; at = line.find(month, at + 1)) {
      if (at > 0 && IsWordChar(line[at - 1])) continue;
      const size_t end = std::min(line.size(), at + 24);
      for (size_t i = at; i + 4 <= end; ++i)
        if (MatchesAlone(line, i, "dddd")) return true;
    }
  }
  return false;
}

bool HasLongHex(std::string_view line) {
  size_t length = 0;
  bool has_digit = false;
  for (const char c : line) {
    length = IsHex(c) ? length + 1 : 0;
    has_digit = length > 0 && (has_digit || IsDigit(c));
    if (length >= kMinHexDigits && has_digit) return true;
  }
  return false;
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

bool IsVolatileLine(std::string_view line) {
  if (line.size() > kMaxLineBytes) return false;
  for (size_t at = 0; at < line.size(); ++at) {
    for (const std::string_view pattern :
         {"dddd-dd-dd", "dddd/dd/dd", "dd.dd.dddd", "dd/dd/dddd", "dd:dd", "dd:dd:dd",
          "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"})
      if (MatchesAlone(line, at, pattern)) return true;
  }
  return HasMonthAndYear(line) || HasLongHex(line);
}

void StabilizePrompt(VolatileLines mode, Conversation* conversation) {
  std::vector<ChatMessage>& messages = conversation->messages;
  if (mode == VolatileLines::kKeep || messages.empty()) return;
  ChatMessage& first = messages.front();
  if (first.role != "system" && first.role != "developer") return;
  const auto user = std::ranges::find_if(messages, [](const ChatMessage& message) {
    return message.role == "user" && !message.content.empty();
  });
  if (mode == VolatileLines::kMove && user == messages.end()) return;

  const std::vector<std::string_view> lines = SplitLines(first.content);
  std::string kept, moved;
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool is_looked_at = i < kMaxLines || i + kMaxLines >= lines.size();
    std::string& to = is_looked_at && IsVolatileLine(lines[i]) ? moved : kept;
    to.append(lines[i]).push_back('\n');
  }
  if (moved.empty()) return;
  if (!kept.empty()) kept.pop_back();  // the end of the last line was not there
  if (mode == VolatileLines::kMove) user->content = moved + "\n" + user->content;
  first.content = kept;
}

}  // namespace hadal
