#include "engine/stop_matcher.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace hadal {
namespace {

struct Outcome {
  std::string text;
  bool is_stopped = false;
  bool operator==(const Outcome&) const = default;
};

Outcome Feed(const std::vector<std::string>& stops, const std::vector<std::string>& chunks) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (const std::string& chunk : chunks) {
    outcome.is_stopped = matcher.Push(chunk, &outcome.text);
    if (outcome.is_stopped) return outcome;
  }
  matcher.Flush(&outcome.text);
  return outcome;
}

// C036 to C038: a part of the stop string was already sent; held letters were lost at the end; the
// first token was the stop. As given, cut at every place and letter by letter.
TEST(StopMatcher, EmitsAsGivenHoweverTheTextIsCut) {
  const Json cases = ReadGoldenJson("engine/stop_cases.json")["cases"];
  ASSERT_EQ(cases.size(), 10u);
  for (const Json& item : cases) {
    if (item.value("reasoning", false)) continue;  // the output processor's
    SCOPED_TRACE(item.dump());
    const auto stops = item["stop"].get<std::vector<std::string>>();
    const auto chunks = item["chunks"].get<std::vector<std::string>>();
    const Outcome expected{item["emit"].get<std::string>(), !item.value("eos", false)};
    EXPECT_EQ(Feed(stops, chunks), expected);
    std::string text;
    std::vector<std::string> letters;
    for (const std::string& chunk : chunks) text += chunk;
    for (const char letter : text) letters.emplace_back(1, letter);
    EXPECT_EQ(Feed(stops, letters), expected);
    for (size_t cut = 0; cut <= text.size(); ++cut)
      EXPECT_EQ(Feed(stops, {text.substr(0, cut), text.substr(cut)}), expected) << cut;
  }
}

TEST(StopMatcher, TakesTheLongestOfStopsThatEndTogether) {
  EXPECT_EQ(Feed({"c", "abc"}, {"xab", "c"}), (Outcome{"x", true}));
}

TEST(StopMatcher, HoldsBackNoMoreThanItMust) {
  StopMatcher matcher({"aab"});
  std::string out;
  EXPECT_FALSE(matcher.Push("xaa", &out));
  EXPECT_EQ(out, "x");
  EXPECT_FALSE(matcher.Push("a", &out));
  EXPECT_EQ(out, "xa");
  EXPECT_FALSE(matcher.Push("c", &out));
  EXPECT_EQ(out, "xaaac");
}

TEST(StopMatcher, PassesEverythingOnWithoutStops) {
  EXPECT_EQ(Feed({}, {"a", "", "b"}), (Outcome{"ab", false}));
}

TEST(StopMatcher, IsLinearInATextFullOfNearMatches) {
  const std::string stop = std::string(1000, 'a') + "b";
  const std::string text(200000, 'a');
  EXPECT_EQ(Feed({stop}, {text, "b"}), (Outcome{std::string(199000, 'a'), true}));
}

}  // namespace
}  // namespace hadal
