#include "text/json_automaton.h"

#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"

namespace hadal {
namespace {

// Whether the text is one whole object for the automaton.
bool Takes(std::string_view text) {
  JsonAutomaton automaton;
  return automaton.Push(text) && automaton.is_done();
}

bool MayBegin(std::string_view text) { return JsonAutomaton().Push(text); }

TEST(JsonAutomaton, TakesObjects) {
  for (const char* text :
       {"{}", "{ }", "{\"a\":1}", "{\"a\": [1, 2.5, -0, 1e5, 1E-07], \"b\": {\"c\": null}}",
        "{\n  \"a\": true,\n  \"b\": false\n}", "{\"\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"}",
        "{\"a\":\"\xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80\"}", "{\"a\":[[],[{}]]}"}) {
    EXPECT_TRUE(Takes(text)) << text;
    EXPECT_TRUE(Json::accept(text)) << text;
  }
}

TEST(JsonAutomaton, RefusesWhatIsNoObject) {
  for (const char* text :
       {"1",           "[1]",        "\"a\"",       " {}",          "{,",
        "{\"a\"}",     "{\"a\":}",   "{\"a\":1,}",  "{a",           "{\"a\":01",
        "{\"a\":1.}",  "{\"a\":.5",  "{\"a\":+1",   "{\"a\":1e}",   "{\"a\":tru}",
        "{\"a\":[1,]", "{\"a\":[1}", "{\"a\":\"\n", "{\"a\":\"\\x", "{\"a\":\"\\u12g",
        "{} ",         "{}{"}) {
    EXPECT_FALSE(MayBegin(text)) << text;
  }
}

// C140: half a character at the end of a token; the rest of it must follow.
TEST(JsonAutomaton, WantsWholeCharacters) {
  EXPECT_TRUE(MayBegin("{\"\xE4\xBD"));
  EXPECT_FALSE(MayBegin("{\"\xE4\""));
  EXPECT_FALSE(MayBegin("{\"\xC0"));
  EXPECT_FALSE(MayBegin("{\"\xFF"));
  EXPECT_FALSE(MayBegin("{\"\x80"));
}

// Readers refuse halves of surrogate pairs and numbers that do not fit.
TEST(JsonAutomaton, WritesNothingThatReadersRefuse) {
  EXPECT_FALSE(MayBegin("{\"\\ud8"));
  EXPECT_FALSE(MayBegin("{\"\\uDF"));
  EXPECT_TRUE(MayBegin("{\"\\ud7ff"));
  EXPECT_FALSE(MayBegin("{\"a\":1e999"));
}

// C138: endless blanks.
TEST(JsonAutomaton, BoundsWhiteSpaceAndDepth) {
  EXPECT_TRUE(MayBegin("{" + std::string(64, ' ')));
  EXPECT_FALSE(MayBegin("{" + std::string(100, ' ')));
  std::string deep;
  for (int i = 0; i < 63; ++i) deep += "{\"a\":";
  EXPECT_TRUE(MayBegin(deep + "{"));
  EXPECT_FALSE(MayBegin(deep + "{\"a\":{"));
}

TEST(JsonAutomaton, HasOneKeyForPlacesThatAllowTheSame) {
  JsonAutomaton first, second, third;
  ASSERT_TRUE(first.Push("{\"a\": \"some"));
  ASSERT_TRUE(second.Push("{\"other\": 1, \"b\": \"word\xC3\xA9"));
  ASSERT_TRUE(third.Push("{\"a\": [\"some"));
  EXPECT_EQ(first.Key(), second.Key());
  EXPECT_NE(first.Key(), third.Key());
}

// A random walk along what it allows always ends in what a parser takes.
TEST(JsonAutomaton, NeverLeadsAstray) {
  const std::string_view alphabet = "{}[]\":,0129.eE+-\\/nrutfalse \n\xC3\xA9xd";
  int num_whole = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    JsonAutomaton automaton;
    std::string text;
    for (uint64_t i = 0; !automaton.is_done() && i < 4000; ++i) {
      // Closing brackets more often the longer it gets, so that most walks end.
      const uint64_t draw = RandomBits(seed, i, 0);
      const char c =
          i > 60 && draw % 3 == 0 ? "}]\"10el"[draw / 3 % 7] : alphabet[draw / 3 % alphabet.size()];
      JsonAutomaton next = automaton;
      if (!next.Push(static_cast<uint8_t>(c))) continue;
      automaton = next;
      text += c;
    }
    if (!automaton.is_done()) continue;
    ++num_whole;
    EXPECT_TRUE(Json::accept(text)) << "seed " << seed << ": " << text;
  }
  EXPECT_GT(num_whole, 100);
}

}  // namespace
}  // namespace hadal
