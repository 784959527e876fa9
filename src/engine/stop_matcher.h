// Stop strings in a text that arrives in pieces. What may still become a stop string is held back;
// however the text is cut, the same comes out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hadal {

class StopMatcher {
 public:
  // REQUIRES: no string is empty.
  explicit StopMatcher(std::vector<std::string> stops);

  // Appends to `out` what is certain not to be part of a stop string. True when one is complete:
  // the first to be complete wins, of several at the same place the longest; it and everything
  // behind it is dropped.
  bool Push(std::string_view text, std::string* out);

  // The one that was complete; empty before.
  const std::string& met() const { return met_; }

  // The text ended otherwise: lets go what was held back.
  void Flush(std::string* out);

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // Knuth, Morris, Pratt: by matched length, the next shorter one
    size_t num_matched = 0;
  };
  static void Advance(char c, Pattern* pattern);

  std::vector<Pattern> patterns_;
  std::string held_, met_;
};

}  // namespace hadal
