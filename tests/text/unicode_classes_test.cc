#include "text/unicode_classes.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace hadal {
namespace {

Json ReadClasses() {
  const std::string path = std::string(HADAL_SOURCE_DIR) + "/tools/data/unicode16_classes.json";
  return ParseJson(ReadFile(path, 1 << 20).value(), path).value();
}

// Every code point of the reference's classes, and none besides.
TEST(UnicodeClasses, AreThoseOfTheReferenceForEveryCodePoint) {
  const std::vector<std::pair<std::string, CodePointKind>> kinds = {
      {"space", CodePointKind::kSpace},   {"L", CodePointKind::kLetter},
      {"M", CodePointKind::kMark},        {"N", CodePointKind::kNumber},
      {"P", CodePointKind::kPunctuation}, {"S", CodePointKind::kSymbol}};
  const Json classes = ReadClasses();
  std::vector<CodePointKind> expected(0x110000, CodePointKind::kOther);
  for (const auto& [name, kind] : kinds) {
    for (const Json& range : classes.at(name)) {
      for (int c = range.at(0); c <= range.at(1).get<int>(); ++c) {
        expected[static_cast<size_t>(c)] = kind;
      }
    }
  }
  for (size_t c = 0; c < expected.size(); ++c) {
    const CodePointClass value = CodePointClasses()[c];
    ASSERT_EQ(static_cast<CodePointKind>(value & kKindMask), expected[c]) << std::hex << c;
    ASSERT_EQ((value & kIsLineEnd) != 0, c == '\r' || c == '\n') << std::hex << c;
  }
}

TEST(UnicodeClasses, HaveTheV3EastAsianClassOfTheReference) {
  std::vector<bool> expected(0x110000);
  const Json classes = ReadClasses();
  for (const Json& range : classes.at("cjk")) {
    for (int c = range.at(0); c <= range.at(1).get<int>(); ++c) {
      expected[static_cast<size_t>(c)] = true;
    }
  }
  for (size_t c = 0; c < expected.size(); ++c) {
    ASSERT_EQ((CodePointClasses()[c] & kIsV3East) != 0, expected[c]) << std::hex << c;
  }
}

// A source that went through normalisation would have Greek Omega and Latin K in their places.
TEST(UnicodeClasses, KeepOhmAndKelvinSignsAmongTheV2Letters) {
  for (const int c : {0x2126, 0x212A, 0x41, 0x1E943}) {
    EXPECT_NE(CodePointClasses()[c] & kIsLlmLetter, 0) << std::hex << c;
  }
  for (const int c : {0x2125, 0x2127, 0x4E00, 0x5D0}) {
    EXPECT_EQ(CodePointClasses()[c] & kIsLlmLetter, 0) << std::hex << c;
  }
}

}  // namespace
}  // namespace hadal
