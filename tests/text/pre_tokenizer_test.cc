#include "text/pre_tokenizer.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/utf8.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

using testing::ElementsAre;
using Pieces = std::vector<std::string>;

Pieces Split(PreTokenizerFamily family, std::string_view text) {
  std::vector<size_t> ends;
  PreTokenizer(family).Split(text, &ends);
  Pieces pieces;
  size_t begin = 0;
  for (const size_t end : ends) {
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

Pieces SplitV3(std::string_view text) { return Split(PreTokenizerFamily::kDeepSeekV3, text); }
Pieces SplitLlm(std::string_view text) { return Split(PreTokenizerFamily::kDeepSeekLlm, text); }

void ExpectExamples(PreTokenizerFamily family, std::string_view key) {
  const auto text = ReadFile(HADAL_SOURCE_DIR "/tests/golden/text/spec_examples.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const Json examples = ParseJson(text.value(), "spec_examples.json").value().at(std::string(key));
  ASSERT_GE(examples.size(), 12u);
  for (const Json& example : examples) {
    const auto line = example.at("text").get<std::string>();
    EXPECT_EQ(Split(family, line), example.at("pieces").get<Pieces>()) << line;
  }
}

TEST(PreTokenizer, CutsTheV3ExamplesOfTheSpecification) {
  ExpectExamples(PreTokenizerFamily::kDeepSeekV3, "pretok_v3");
}

TEST(PreTokenizer, CutsTheV2ExamplesOfTheSpecification) {
  ExpectExamples(PreTokenizerFamily::kDeepSeekLlm, "pretok_v2");
}

TEST(PreTokenizer, GroupsDigitsByThreeInV3AndByOneInV2) {
  EXPECT_THAT(SplitV3("12345678901"), ElementsAre("123", "456", "789", "01"));
  EXPECT_THAT(SplitLlm("123"), ElementsAre("1", "2", "3"));
}

// The patterns of the specification as they stand, tried one alternative after the other at each
// place, on code points: slow, and written without looking at the scanners.
class NaiveV3 {
 public:
  explicit NaiveV3(std::u32string text) : text_(std::move(text)) {}

  // Ends of the pieces, in code points.
  std::vector<size_t> Split() {
    std::vector<size_t> cuts = {0, text_.size()};
    for (int step = 1; step <= 3; ++step) {
      std::vector<size_t> next = {0};
      for (size_t piece = 0; piece + 1 < cuts.size(); ++piece) {
        end_ = cuts[piece + 1];
        for (size_t at = cuts[piece]; at < end_;) {
          const size_t length = Match(step, at);
          if (length == 0) {
            ++at;
            continue;
          }
          if (at > next.back()) next.push_back(at);
          at += length;
          next.push_back(at);
        }
        if (end_ > next.back()) next.push_back(end_);
      }
      cuts = next;
    }
    cuts.erase(cuts.begin());
    return cuts;
  }

 private:
  using Class = std::function<bool(char32_t)>;
  static CodePointKind KindOf(char32_t c) {
    return static_cast<CodePointKind>(CodePointClasses()[c] & kKindMask);
  }
  static bool IsEast(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x309F) ||
           (c >= 0x30A0 && c <= 0x30FF);
  }
  size_t Run(size_t at, const Class& in, size_t limit = SIZE_MAX) const {
    size_t length = 0;
    while (length < limit && at + length < end_ && in(text_[at + length])) ++length;
    return length;
  }
  size_t Match(int step, size_t at) const {
    if (step == 1)
      return Run(
          at, [](char32_t c) { return KindOf(c) == CodePointKind::kNumber; }, 3);
    if (step == 2) return Run(at, IsEast);
    return MatchWord(at);
  }
  size_t MatchWord(size_t at) const {
    const Class ascii_mark = [](char32_t c) {
      return std::u32string_view(U"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~").find(c) !=
             std::u32string::npos;
    };
    const Class ascii_letter = [](char32_t c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    const Class line_end = [](char32_t c) { return c == '\r' || c == '\n'; };
    const Class space = [](char32_t c) { return KindOf(c) == CodePointKind::kSpace; };
    const Class mark = [](char32_t c) {
      return KindOf(c) == CodePointKind::kPunctuation || KindOf(c) == CodePointKind::kSymbol;
    };
    const Class word = [](char32_t c) {
      return KindOf(c) == CodePointKind::kLetter || KindOf(c) == CodePointKind::kMark;
    };
    const Class lead = [&](char32_t c) {
      return !line_end(c) && KindOf(c) != CodePointKind::kLetter && !mark(c);
    };
    if (Run(at, ascii_mark, 1) == 1 && Run(at + 1, ascii_letter) > 0) {
      return 1 + Run(at + 1, ascii_letter);
    }
    for (size_t optional = Run(at, lead, 1) + 1; optional-- > 0;) {
      if (const size_t letters = Run(at + optional, word)) return optional + letters;
    }
    for (size_t optional = (text_[at] == ' ' ? 1 : 0) + 1u; optional-- > 0;) {
      const size_t marks = Run(at + optional, mark);
      if (marks > 0) return optional + marks + Run(at + optional + marks, line_end);
    }
    for (size_t spaces = Run(at, space) + 1; spaces-- > 0;) {
      if (const size_t ends = Run(at + spaces, line_end)) return spaces + ends;
    }
    for (size_t spaces = Run(at, space); spaces > 0; --spaces) {
      if (at + spaces == end_ || space(text_[at + spaces])) return spaces;
    }
    return Run(at, space);
  }

  std::u32string text_;
  size_t end_ = 0;
};

TEST(PreTokenizer, IsThePatternsOfTheSpecificationOnRandomTexts) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::u32string common =
      U"  \n\r\t\u00a0\u3000\u0085\u2028abZ09\u00bd.,<_'+\u20ac\u00e9\u0301\u0416\u4e2d\u3042\u30fb"
      U"\u3099\u200d\ufeff\x01\u0378\U0001F996";
  for (int round = 0; round < 20000; ++round) {
    std::u32string text;
    std::string bytes;
    std::vector<size_t> offsets = {0};
    for (size_t left = 1 + random() % 12; left > 0; --left) {
      text += common[random() % common.size()];
      AppendCodePoint(text.back(), &bytes);
      offsets.push_back(bytes.size());
    }
    std::vector<size_t> expected, found;
    for (const size_t end : NaiveV3(text).Split()) expected.push_back(offsets[end]);
    PreTokenizer(PreTokenizerFamily::kDeepSeekV3).Split(bytes, &found);
    ASSERT_EQ(found, expected) << testing::PrintToString(bytes);
  }
}

TEST(PreTokenizer, LeavesUnmatchedCharactersTogetherAsPieces) {
  EXPECT_THAT(SplitV3("\x01\x02."), ElementsAre("\x01\x02", "."));
  EXPECT_THAT(SplitV3("\x01\x02"
                      "a"),
              ElementsAre("\x01",
                          "\x02"
                          "a"));
}

TEST(PreTokenizer, GivesNothingForNothing) {
  EXPECT_TRUE(SplitV3("").empty());
  EXPECT_TRUE(SplitLlm("").empty());
}

}  // namespace
}  // namespace hadal
