#include "text/pre_tokenizer.h"

#include <array>
#include <cstdint>

namespace hadal {
namespace {

struct Symbol {
  CodePointClass value;
  int length;  // bytes
};

// The class of the character at `p`, which is well-formed.
Symbol ReadSymbol(const CodePointClass* classes, const char* p) {
  const auto byte = [p](int i) { return static_cast<uint32_t>(static_cast<uint8_t>(p[i])); };
  const auto tail = [&](int i) { return byte(i) & 0x3F; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {classes[lead], 1};
  if (lead < 0xE0) return {classes[((lead & 0x1F) << 6) | tail(1)], 2};
  if (lead < 0xF0) return {classes[((lead & 0x0F) << 12) | (tail(1) << 6) | tail(2)], 3};
  return {classes[((lead & 0x07) << 18) | (tail(1) << 12) | (tail(2) << 6) | tail(3)], 4};
}

CodePointKind Kind(CodePointClass value) { return static_cast<CodePointKind>(value & kKindMask); }
bool IsSpace(CodePointClass value) { return Kind(value) == CodePointKind::kSpace; }
bool IsNumber(CodePointClass value) { return Kind(value) == CodePointKind::kNumber; }
bool IsLetter(CodePointClass value) { return Kind(value) == CodePointKind::kLetter; }
bool IsPunctuation(CodePointClass value) { return Kind(value) == CodePointKind::kPunctuation; }
bool IsLetterOrMark(CodePointClass value) {
  return IsLetter(value) || Kind(value) == CodePointKind::kMark;
}
bool IsPunctuationOrSymbol(CodePointClass value) {
  return IsPunctuation(value) || Kind(value) == CodePointKind::kSymbol;
}
bool IsLineEnd(CodePointClass value) { return (value & kIsLineEnd) != 0; }
bool IsV3East(CodePointClass value) { return (value & kIsV3East) != 0; }
bool IsLlmLetter(CodePointClass value) { return (value & kIsLlmLetter) != 0; }
bool IsLlmPunctuation(CodePointClass value) { return (value & kIsLlmPunctuation) != 0; }
bool IsLlmEast(CodePointClass value) { return (value & kIsLlmEast) != 0; }

using Test = bool (*)(CodePointClass);

constexpr int kNoLimit = INT32_MAX;

// Where the characters from `p` on stop passing the test, or `limit` of them are taken.
template <Test kTest>
const char* SkipWhile(const CodePointClass* classes, const char* p, const char* end,
                      int limit = kNoLimit) {
  for (; p < end && limit > 0; --limit) {
    const Symbol symbol = ReadSymbol(classes, p);
    if (!kTest(symbol.value)) break;
    p += symbol.length;
  }
  return p;
}

// [class]{1,kLimit}
template <Test kTest, int kLimit>
TextSpan FindRun(const CodePointClass* classes, const char* from, const char* end) {
  while (from < end) {
    const Symbol symbol = ReadSymbol(classes, from);
    if (kTest(symbol.value)) {
      return {from, SkipWhile<kTest>(classes, from + symbol.length, end, kLimit - 1)};
    }
    from += symbol.length;
  }
  return {end, end};
}

// \s?[class]+
template <Test kTest>
TextSpan FindRunAfterSpace(const CodePointClass* classes, const char* from, const char* end) {
  const char* space = nullptr;  // the character before `from`, when it is a space
  while (from < end) {
    const Symbol symbol = ReadSymbol(classes, from);
    if (kTest(symbol.value)) {
      return {space != nullptr ? space : from,
              SkipWhile<kTest>(classes, from + symbol.length, end)};
    }
    space = IsSpace(symbol.value) ? from : nullptr;
    from += symbol.length;
  }
  return {end, end};
}

// \s+$, from the back: trying it at every space in turn would take quadratic time.
TextSpan FindTrailingSpaces(const CodePointClass* classes, const char* from, const char* end) {
  const char* begin = end;
  while (begin > from) {
    const char* p = begin - 1;
    while ((static_cast<uint8_t>(*p) & 0xC0) == 0x80) --p;
    if (!IsSpace(ReadSymbol(classes, p).value)) break;
    begin = p;
  }
  return {begin, end};
}

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsAsciiPunctuation(char c) {
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
         (c >= 0x7B && c <= 0x7E);
}

// The three alternatives for white space: \s*[\r\n]+|\s+(?!\S)|\s+. The run ends after its last
// line end; without one it leaves its last character to what follows, if anything does and if that
// leaves something.
const char* MatchV3Spaces(const CodePointClass* classes, const char* p, const char* end) {
  const char* after_line_end = nullptr;
  const char* last = p;
  const char* run_end = p;
  while (run_end < end) {
    const Symbol symbol = ReadSymbol(classes, run_end);
    if (!IsSpace(symbol.value)) break;
    last = run_end;
    run_end += symbol.length;
    if (IsLineEnd(symbol.value)) after_line_end = run_end;
  }
  if (after_line_end != nullptr) return after_line_end;
  return run_end == end || last == p ? run_end : last;
}

// ` ?[\p{P}\p{S}]+[\r\n]*`, or `p` where it does not match.
const char* MatchV3Punctuation(const CodePointClass* classes, const char* p, const char* end) {
  const char* first = *p == ' ' ? p + 1 : p;
  const char* run_end = SkipWhile<IsPunctuationOrSymbol>(classes, first, end);
  return run_end == first ? p : SkipWhile<IsLineEnd>(classes, run_end, end);
}

// The end of the match of the third V3 pattern at `p`; `p` when there is none. The alternatives
// stand in the pattern's order; the first that matches wins.
const char* MatchV3Word(const CodePointClass* classes, const char* p, const char* end) {
  if (IsAsciiPunctuation(*p) && p + 1 < end && IsAsciiLetter(p[1])) {
    p += 2;
    while (p < end && IsAsciiLetter(*p)) ++p;
    return p;
  }
  const Symbol symbol = ReadSymbol(classes, p);
  const char* next = p + symbol.length;
  // [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
  if (IsLetterOrMark(symbol.value)) return SkipWhile<IsLetterOrMark>(classes, next, end);
  if (!IsLineEnd(symbol.value) && !IsPunctuationOrSymbol(symbol.value)) {
    const char* run_end = SkipWhile<IsLetterOrMark>(classes, next, end);
    if (run_end > next) return run_end;
  }
  if (const char* run_end = MatchV3Punctuation(classes, p, end); run_end > p) return run_end;
  return IsSpace(symbol.value) ? MatchV3Spaces(classes, p, end) : p;
}

TextSpan FindV3Word(const CodePointClass* classes, const char* from, const char* end) {
  while (from < end) {
    if (const char* match_end = MatchV3Word(classes, from, end); match_end > from) {
      return {from, match_end};
    }
    from += ReadSymbol(classes, from).length;
  }
  return {end, end};
}

constexpr std::array<PatternScanner, 3> kV3Scanners = {
    FindRun<IsNumber, 3>,
    FindRun<IsV3East, kNoLimit>,
    FindV3Word,
};
constexpr std::array<PatternScanner, 6> kLlmScanners = {
    FindRun<IsLineEnd, 1>, FindRunAfterSpace<IsLlmLetter>, FindRunAfterSpace<IsLlmPunctuation>,
    FindTrailingSpaces,    FindRun<IsLlmEast, kNoLimit>,   FindRun<IsNumber, 1>,
};
constexpr std::array<PatternScanner, 5> kCoderScanners = {
    FindRun<IsLineEnd, 1>,        FindRunAfterSpace<IsLetter>, FindRunAfterSpace<IsPunctuation>,
    FindRun<IsLlmEast, kNoLimit>, FindRun<IsNumber, 1>,
};

std::span<const PatternScanner> ScannersOf(PreTokenizerFamily family) {
  switch (family) {
    case PreTokenizerFamily::kDeepSeekV3:
      return kV3Scanners;
    case PreTokenizerFamily::kDeepSeekLlm:
      return kLlmScanners;
    case PreTokenizerFamily::kDeepSeekCoder:
      return kCoderScanners;
  }
  return {};
}

}  // namespace

PreTokenizer::PreTokenizer(PreTokenizerFamily family)
    : scanners_(ScannersOf(family)), classes_(CodePointClasses()) {}

void PreTokenizer::Split(std::string_view text, std::vector<size_t>* ends) const {
  ends->clear();
  if (text.empty()) return;
  ends->push_back(text.size());
  const char* base = text.data();
  std::vector<size_t> before;
  for (const PatternScanner scanner : scanners_) {
    before.swap(*ends);
    ends->clear();
    const char* from = base;
    for (const size_t piece_end : before) {
      const char* end = base + piece_end;
      while (from < end) {
        const TextSpan match = scanner(classes_, from, end);
        if (match.begin > from) ends->push_back(static_cast<size_t>(match.begin - base));
        if (match.end > match.begin) ends->push_back(static_cast<size_t>(match.end - base));
        from = match.end;
      }
    }
  }
}

}  // namespace hadal
