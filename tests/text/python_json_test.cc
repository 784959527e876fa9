#include "text/python_json.h"

#include <string>

#include <gtest/gtest.h>

namespace hadal {
namespace {

std::string Respelled(std::string_view text) {
  Result<Json> value = ParseJsonKeepingIntegers(text, "test");
  EXPECT_TRUE(value.ok()) << value.status().message();
  return value.ok() ? DumpPythonJson(*value) : std::string();
}

TEST(PythonJson, PutsASpaceAfterCommaAndColonOnly) {
  EXPECT_EQ(Respelled(" {\"a\":[1,2 , {}],\"b\" : [ ] } "), "{\"a\": [1, 2, {}], \"b\": []}");
}

TEST(PythonJson, SpellsFloatsByRepr) {
  EXPECT_EQ(Respelled("[1e3, 1.0, 0.1, -0.0, 1e15, 1e16, 1.5e300, 0.0001, 0.00001, 123456.789e3]"),
            "[1000.0, 1.0, 0.1, -0.0, 1000000000000000.0, 1e+16, 1.5e+300, 0.0001, 1e-05, "
            "123456789.0]");
  EXPECT_EQ(Respelled("[5e-324, 1.7976931348623157e308, 9007199254740993.0, 1E2]"),
            "[5e-324, 1.7976931348623157e+308, 9007199254740992.0, 100.0]");
}

TEST(PythonJson, KeepsIntegersOfAnyLength) {
  EXPECT_EQ(Respelled("[18446744073709551615, 18446744073709551616, -9223372036854775809, -0]"),
            "[18446744073709551615, 18446744073709551616, -9223372036854775809, 0]");
  const std::string digits = "-" + std::string(5000, '7');
  EXPECT_EQ(Respelled("[0, \"12\", " + digits + ", 1.5, " + digits + "]"),
            "[0, \"12\", " + digits + ", 1.5, " + digits + "]");
}

TEST(PythonJson, KeepsTheFirstPlaceAndTheLastValueOfARepeatedKey) {
  EXPECT_EQ(Respelled(R"({"a": 1, "b": {"x": 1, "x": [2]}, "a": {"c": 3}})"),
            R"({"a": {"c": 3}, "b": {"x": [2]}})");
}

TEST(PythonJson, EscapesControlCharactersAndKeepsOthers) {
  EXPECT_EQ(Respelled(R"(["\u0000\u001f\b\f\n\r\t\"\\\/\u007f\u00e9\ud83d\ude00\u2028"])"),
            "[\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\/\x7f\xC3\xA9\xF0\x9F\x98\x80\xE2\x80\xA8\"]");
}

TEST(PythonJson, ReadsScalars) {
  EXPECT_EQ(Respelled("null"), "null");
  EXPECT_EQ(Respelled(" true"), "true");
  EXPECT_EQ(Respelled("123456789012345678901"), "123456789012345678901");
  EXPECT_EQ(Respelled("\"x\""), "\"x\"");
}

TEST(PythonJson, RefusesWhatIsNotJson) {
  const std::string zeros = "0" + std::string(400, '1');
  for (const std::string text : {"", "{", "[1,]", "{\"a\"}", "nul", "01", "1 2", "[\"\xff\"]",
                                 "[\"\\ud800\"]", "NaN", "\"", "\"\\", "-", zeros.c_str()}) {
    const Result<Json> value = ParseJsonKeepingIntegers(text, "there");
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(value.status().message().substr(0, 7), "there: ");
  }
}

TEST(PythonJson, RefusesDeepNestingWithoutRecursion) {
  const std::string deep(1 << 20, '[');
  const Result<Json> value = ParseJsonKeepingIntegers(deep, "there");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().message(),
            "there: JSON nesting: expected at most 128 levels, found more");
  EXPECT_EQ(Respelled(std::string(128, '[') + std::string(128, ']')),
            std::string(128, '[') + std::string(128, ']'));
}

TEST(PythonJson, RefusesANumberBeyondADouble) {
  const Result<Json> value = ParseJsonKeepingIntegers("[1e999]", "there");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().message(),
            "there: expected a number that a double can hold, found one out of range at byte 6");
}

}  // namespace
}  // namespace hadal
