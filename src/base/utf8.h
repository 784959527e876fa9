// UTF-8: validity, repair, and the unfinished tail that a stream must hold back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hadal {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

struct DecodedCodePoint {
  char32_t value = kReplacementCharacter;
  int length =
      1;  // bytes taken; at an error, those of the longest ill-formed prefix (Unicode 3.9, D93b)
  bool is_valid = false;
};

// The code point at the start of `text`. REQUIRES: !text.empty(). Surrogates, overlong forms and
// values above U+10FFFF are invalid.
DecodedCodePoint DecodeCodePoint(std::string_view text);

void AppendCodePoint(char32_t value, std::string* out);

bool IsValidUtf8(std::string_view text);

// `text` with every ill-formed part replaced by U+FFFD, as Unicode recommends.
std::string RepairUtf8(std::string_view text);

// Bytes at the end of `text` that begin a character which more bytes could still finish: 0 to 3.
int UnfinishedTailLength(std::string_view text);

}  // namespace hadal
