#include "evaluate/text_windows.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

constexpr int64_t kMaxTextBytes = int64_t{1} << 30;

std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::string_view text,
                            const WindowOptions& options) {
  return options.has_specials ? tokenizer.EncodeWithSpecials(text) : tokenizer.Encode(text);
}

// Adds a window, no longer than what max_tokens leaves. False when nothing more is wanted.
bool AddWindow(std::span<const TokenId> ids, const WindowOptions& options, int64_t* total,
               std::vector<TokenWindow>* windows) {
  auto size = static_cast<int64_t>(ids.size());
  if (options.max_tokens > 0) size = std::min(size, options.max_tokens - *total);
  if (size < 2) return false;
  windows->emplace_back(ids.begin(), ids.begin() + size);
  *total += size;
  return true;
}

// Lines {"text": ...}; empty lines are passed over.
Result<std::vector<std::string>> ReadTextLines(std::string_view content, const std::string& path) {
  std::vector<std::string> texts;
  int line_number = 0;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    const std::string what = fmt::format("{}: line {}", path, ++line_number);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ASSIGN_OR_RETURN(const Json entry, ParseJson(line, what));
    ASSIGN_OR_RETURN(std::string text, ReadString(entry, "text", what));
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<std::vector<std::string>> ReadTextList(std::string_view content, const std::string& path) {
  ASSIGN_OR_RETURN(const Json list, ParseJson(content, path));
  if (!list.is_array()) {
    return Status::Corrupt(
        fmt::format("{}: expected a list of texts, found {}", path, list.type_name()));
  }
  std::vector<std::string> texts;
  for (const Json& entry : list) {
    if (!entry.is_string()) {
      return Status::Corrupt(fmt::format("{}: entry {}: expected a text, found {}", path,
                                         texts.size(), entry.type_name()));
    }
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

}  // namespace

std::vector<TokenWindow> CutText(const Tokenizer& tokenizer, std::string_view text,
                                 const WindowOptions& options) {
  const std::vector<TokenId> ids = Encode(tokenizer, text, options);
  const auto window = static_cast<size_t>(options.window_tokens);
  std::vector<TokenWindow> windows;
  int64_t total = 0;
  for (size_t begin = 0; begin < ids.size(); begin += window) {
    const std::span<const TokenId> rest = std::span(ids).subspan(begin);
    if (rest.size() < window && !windows.empty()) break;
    if (!AddWindow(rest.first(std::min(window, rest.size())), options, &total, &windows)) break;
  }
  return windows;
}

std::vector<TokenWindow> CutTexts(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                                  const WindowOptions& options) {
  const auto first = static_cast<size_t>(options.first_text);
  const size_t end = options.num_texts == 0
                         ? texts.size()
                         : std::min(texts.size(), first + static_cast<size_t>(options.num_texts));
  std::vector<TokenWindow> windows;
  int64_t total = 0;
  for (size_t i = first; i < end; ++i) {
    const std::vector<TokenId> ids = Encode(tokenizer, texts[i], options);
    if (ids.size() < 2) continue;
    const size_t size = std::min(ids.size(), static_cast<size_t>(options.window_tokens));
    if (!AddWindow(std::span(ids).first(size), options, &total, &windows)) break;
  }
  return windows;
}

Result<std::vector<TokenWindow>> ReadWindows(const Tokenizer& tokenizer, const std::string& path,
                                             const WindowOptions& options) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path, kMaxTextBytes));
  std::vector<TokenWindow> windows;
  if (path.ends_with(".json") || path.ends_with(".jsonl")) {
    ASSIGN_OR_RETURN(const std::vector<std::string> texts, path.ends_with(".json")
                                                               ? ReadTextList(content, path)
                                                               : ReadTextLines(content, path));
    windows = CutTexts(tokenizer, texts, options);
  } else {
    windows = CutText(tokenizer, content, options);
  }
  if (windows.empty()) {
    return Status::InvalidArgument(
        fmt::format("{}: expected text of at least two tokens, found less", path));
  }
  return windows;
}

}  // namespace hadal
