// What the pre-tokenizers ask of a code point: its general category (Unicode 16, as the reference
// tokenizer has it) and the classes that the published patterns list by code point.
#pragma once

#include <array>
#include <cstdint>

namespace hadal {

// The low bits of a class.
enum class CodePointKind : uint8_t {
  kOther = 0,  // control, format, private, unassigned
  kSpace = 1,  // White_Space, with U+0085 and without U+FEFF
  kLetter = 2,
  kMark = 3,
  kNumber = 4,
  kPunctuation = 5,
  kSymbol = 6,
};

// Kind in the low three bits, and the flags below. tools/make_unicode_table.py has the same values.
using CodePointClass = uint8_t;
inline constexpr CodePointClass kKindMask = 7;
inline constexpr CodePointClass kIsV3East = 8;           // U+4E00-9FA5, 3040-309F, 30A0-30FF
inline constexpr CodePointClass kIsLlmLetter = 16;       // LETTERS, specification 9.3
inline constexpr CodePointClass kIsLlmPunctuation = 32;  // has all ASCII letters too, 9.3
inline constexpr CodePointClass kIsLlmEast = 64;         // U+0800-9FA5, AC00-D7FF
inline constexpr CodePointClass kIsLineEnd = 128;        // CR, LF

// Code points from `first` up to the next run's have `value`.
struct CodePointRun {
  uint32_t first;
  CodePointClass value;
};
inline constexpr int kNumCodePointRuns = 2359;
extern const std::array<CodePointRun, kNumCodePointRuns> kCodePointRuns;

// The runs spread out, a class for each of U+0000 to U+10FFFF; made at the first call, any thread.
const CodePointClass* CodePointClasses();

}  // namespace hadal
