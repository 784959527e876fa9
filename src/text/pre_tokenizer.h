// Cuts a text into the pieces in which byte-pair merges happen, as the patterns of the published
// tokenizers do, without a regular-expression engine: each pattern is one scanner over Unicode
// classes, in time linear in the text. Specification, 9.2 and 9.3.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "text/unicode_classes.h"

namespace hadal {

// The sets of patterns that DeepSeek published.
enum class PreTokenizerFamily {
  kDeepSeekV3,     // V3, R1, V3.1, V3.2
  kDeepSeekLlm,    // deepseek-llm, V2, V2-Lite, V2.5, Coder-V2
  kDeepSeekCoder,  // the first deepseek-coder
};

// A part of a text; empty when nothing was found.
struct TextSpan {
  const char* begin;
  const char* end;
};

// One pattern: its leftmost match in [from, end). Look-aheads and `$` see `end` as the end of the
// text. REQUIRES: valid UTF-8, from < end.
using PatternScanner = TextSpan (*)(const CodePointClass* classes, const char* from,
                                    const char* end);

class PreTokenizer {
 public:
  explicit PreTokenizer(PreTokenizerFamily family);

  // Sets `ends` to the end offset of each piece, in order; the last one is text.size(). No piece is
  // empty. Each pattern is applied to the pieces that the ones before it left, and both its matches
  // and the text between them become pieces. REQUIRES: valid UTF-8.
  void Split(std::string_view text, std::vector<size_t>* ends) const;

 private:
  std::span<const PatternScanner> scanners_;
  const CodePointClass* classes_;
};

}  // namespace hadal
