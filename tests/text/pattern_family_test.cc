#include "text/pattern_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::HasSubstr;

TEST(PatternFamily, SeesThroughTheSpellingOfAClass) {
  EXPECT_EQ(CanonicalPattern("[\r\n]"), CanonicalPattern(R"([\n\r])"));
  EXPECT_EQ(CanonicalPattern("[a-cd-f]+"), CanonicalPattern("[a-f]+"));
  EXPECT_EQ(CanonicalPattern("[\u4e00-\u9fa5]"), CanonicalPattern(R"([\x{4E00}-\u9FA5])"));
  EXPECT_EQ(CanonicalPattern(R"([\p{P}\p{L}-])"), CanonicalPattern(R"([\-\p{L}\p{P}])"));
}

TEST(PatternFamily, KeepsPatternsApartThatDiffer) {
  EXPECT_NE(CanonicalPattern("[^a]"), CanonicalPattern("[\\^a]"));
  EXPECT_NE(CanonicalPattern("a+"), CanonicalPattern("a\\+"));
  EXPECT_NE(CanonicalPattern("\\s"), CanonicalPattern("\\S"));
  EXPECT_NE(CanonicalPattern("[a-z]"), CanonicalPattern("[az-]"));
  EXPECT_NE(CanonicalPattern(R"(\p{N})"), CanonicalPattern(R"(\p{L})"));
}

TEST(PatternFamily, GivesBackWhatItDoesNotUnderstand) {
  for (const char* pattern :
       {"[a", "\\", "\\p", "[z-a]", "\\d+", "[[:alpha:]]", "\\x{110000000}"}) {
    EXPECT_EQ(CanonicalPattern(pattern), pattern);
  }
}

TEST(PatternFamily, KnowsTheFirstDeepSeekCoder) {
  const std::vector<std::string> patterns = {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                             "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
                                             R"(\p{N})"};
  const Result<PreTokenizerFamily> family = RecognisePatterns(patterns, "t.json");
  ASSERT_TRUE(family.ok()) << family.status().message();
  EXPECT_EQ(family.value(), PreTokenizerFamily::kDeepSeekCoder);
}

TEST(PatternFamily, NamesThePatternThatFitsNoFamily) {
  const std::vector<std::string> patterns = {R"(\p{N}{1,3})", "[a-z]+\n"};
  const Result<PreTokenizerFamily> family = RecognisePatterns(patterns, "t.json");
  ASSERT_FALSE(family.ok());
  EXPECT_EQ(family.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(family.status().message(), HasSubstr("t.json: pre_tokenizer"));
  EXPECT_THAT(family.status().message(), HasSubstr(R"(pattern 2 "[a-z]+\n")"));
  EXPECT_EQ(family.status().message().find('\n'), std::string::npos);
}

TEST(PatternFamily, RefusesAFamilyThatIsCutShort) {
  const Result<PreTokenizerFamily> family =
      RecognisePatterns(std::vector<std::string>{R"(\p{N}{1,3})"}, "t.json");
  ASSERT_FALSE(family.ok());
  EXPECT_THAT(family.status().message(), HasSubstr("only 1 pattern"));
}

}  // namespace
}  // namespace hadal
