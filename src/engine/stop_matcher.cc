#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hadal {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    HADAL_CHECK(!stop.empty());
    Pattern pattern{.text = std::move(stop), .fallback = {}};
    const std::string& text = pattern.text;
    pattern.fallback.assign(text.size() + 1, 0);
    for (size_t i = 1, matched = 0; i < text.size(); ++i) {
      while (matched > 0 && text[i] != text[matched]) matched = pattern.fallback[matched];
      if (text[i] == text[matched]) ++matched;
      pattern.fallback[i + 1] = matched;
    }
    patterns_.push_back(std::move(pattern));
  }
}

void StopMatcher::Advance(char c, Pattern* pattern) {
  size_t matched = pattern->num_matched;
  while (matched > 0 && c != pattern->text[matched]) matched = pattern->fallback[matched];
  if (c == pattern->text[matched]) ++matched;
  pattern->num_matched = matched;
}

bool StopMatcher::Push(std::string_view text, std::string* out) {
  if (patterns_.empty()) {
    out->append(text);
    return false;
  }
  for (const char c : text) {
    held_.push_back(c);
    size_t stop_length = 0;
    for (Pattern& pattern : patterns_) {
      Advance(c, &pattern);
      if (pattern.num_matched == pattern.text.size())
        stop_length = std::max(stop_length, pattern.text.size());
    }
    if (stop_length > 0) {
      out->append(held_, 0, held_.size() - stop_length);
      met_ = held_.substr(held_.size() - stop_length);
      held_.clear();
      return true;
    }
  }
  size_t num_kept = 0;
  for (const Pattern& pattern : patterns_) num_kept = std::max(num_kept, pattern.num_matched);
  out->append(held_, 0, held_.size() - num_kept);
  held_.erase(0, held_.size() - num_kept);
  return false;
}

void StopMatcher::Flush(std::string* out) {
  out->append(held_);
  held_.clear();
  for (Pattern& pattern : patterns_) pattern.num_matched = 0;
}

}  // namespace hadal
