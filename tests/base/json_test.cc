#include "base/json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::HasSubstr;

std::string Fault(std::string_view text) { return ParseJson(text, "f.json").status().message(); }

TEST(Json, ReadsWhatIsValid) {
  const Result<Json> value = ParseJson(R"({"a": [1, 2.5, "é", null, true]})", "f.json");
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ((*value)["a"].size(), 5u);
  EXPECT_EQ((*ParseJson(R"({"a": 1, "a": 2})", "f.json"))["a"], 2) << "the last value counts";
}

TEST(Json, SaysWhereAFaultIs) {
  EXPECT_EQ(Fault("[1, 2,]"), "f.json: expected JSON, found a fault at byte 7");
  EXPECT_THAT(Fault(""), HasSubstr("f.json: expected JSON"));
  EXPECT_THAT(Fault("[1] 2"), HasSubstr("found a fault"));
  EXPECT_THAT(Fault("[\"\xff\"]"), HasSubstr("found a fault")) << "ill-formed UTF-8";
  EXPECT_THAT(Fault("[\"\\ud800\"]"), HasSubstr("found a fault")) << "half a surrogate pair";
}

// C115: nesting ended the process.
TEST(Json, RefusesDeepNestingWithoutRecursion) {
  EXPECT_EQ(Fault(std::string(100000, '[') + std::string(100000, ']')),
            "f.json: JSON nesting: expected at most 128 levels, found 100000");
  EXPECT_TRUE(ParseJson(std::string(128, '[') + std::string(128, ']'), "f.json").ok());
  EXPECT_TRUE(ParseJson("[\"" + std::string(1000, '[') + "\\\"[\"]", "f.json").ok())
      << "brackets inside a string nest nothing";
}

TEST(Json, IntegersAreWholeAndInRange) {
  const Json object = Json::parse(
      R"({"n": 5, "whole": 8.0, "part": 8.5, "huge": 18446744073709551615, "text": "5"})");
  const auto read = [&](const char* key) { return ReadInt(object, key, 0, 10, "f.json"); };
  EXPECT_EQ(*read("n"), 5);
  EXPECT_EQ(*read("whole"), 8) << "some writers spell whole numbers so";
  for (const char* key : {"part", "huge", "text", "absent"}) EXPECT_FALSE(read(key).ok()) << key;
  EXPECT_EQ(ReadInt(object, "n", 6, 10, "f.json").status().message(),
            "f.json: n: expected an integer from 6 to 10, found 5");
  EXPECT_EQ(*ReadIntOr(object, "absent", 0, 10, 7, "f.json"), 7);
}

TEST(Json, NumbersAreFinite) {
  const Json object = Json::parse(R"({"x": 1e308, "y": "nan", "z": null})");
  EXPECT_EQ(*ReadNumber(object, "x", "f.json"), 1e308);
  EXPECT_FALSE(ReadNumber(object, "y", "f.json").ok());
  EXPECT_EQ(*ReadNumberOr(object, "z", 2.5, "f.json"), 2.5) << "null is absent";
  EXPECT_EQ(ParseJson("[1e999]", "f.json").status().message(),
            "f.json: expected JSON with numbers up to 1.8e308, found a larger one");
}

TEST(Json, ALongValueIsCutInTheMessage) {
  const Json object = {{"key", std::string(5000, 'x')}};
  EXPECT_LT(ReadInt(object, "key", 0, 1, "f.json").status().message().size(), 200u);
}

TEST(Json, IllFormedTextIsWrittenAsReplacement) {
  EXPECT_EQ(DumpJson(Json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace hadal
