#include "evaluate/text_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

const Tokenizer& Bundled() {
  static const std::unique_ptr<Tokenizer> tokenizer = [] {
    Result<std::unique_ptr<Tokenizer>> loaded =
        Tokenizer::Load(std::string(HADAL_SOURCE_DIR) + "/models/tiny");
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return std::move(loaded).value();
  }();
  return *tokenizer;
}

std::vector<size_t> SizesOf(const std::vector<TokenWindow>& windows) {
  std::vector<size_t> sizes;
  for (const TokenWindow& window : windows) sizes.push_back(window.size());
  return sizes;
}

// "a a a ...": one token each behind the first.
std::string Words(int count) {
  std::string text = "a";
  for (int i = 1; i < count; ++i) text += " a";
  return text;
}

TEST(CutText, LeavesOutTheLastPartThatFillsNoWindow) {
  const std::vector<TokenWindow> windows = CutText(Bundled(), Words(25), {.window_tokens = 10});
  EXPECT_EQ(SizesOf(windows), (std::vector<size_t>{10, 10}));
}

TEST(CutText, WindowsAreTheIdsOfTheTextWithoutABeginToken) {
  const std::string text = "The capital of France is Paris, and the capital of Italy is Rome.";
  const std::vector<TokenId> ids = Bundled().Encode(text);
  const std::vector<TokenWindow> windows = CutText(Bundled(), text, {.window_tokens = 4});
  ASSERT_EQ(windows.size(), ids.size() / 4);
  for (size_t i = 0; i < windows.size(); ++i) {
    EXPECT_TRUE(std::equal(windows[i].begin(), windows[i].end(),
                           ids.begin() + static_cast<std::ptrdiff_t>(4 * i)));
  }
}

TEST(CutText, ATextShorterThanAWindowIsOne) {
  EXPECT_EQ(SizesOf(CutText(Bundled(), Words(7), {.window_tokens = 10})), (std::vector<size_t>{7}));
  EXPECT_TRUE(CutText(Bundled(), "a", {}).empty());
  EXPECT_TRUE(CutText(Bundled(), "", {}).empty());
}

TEST(CutText, EndsAfterTheTokensThatWereAskedFor) {
  EXPECT_EQ(SizesOf(CutText(Bundled(), Words(100), {.window_tokens = 10, .max_tokens = 20})),
            (std::vector<size_t>{10, 10}));
  EXPECT_EQ(SizesOf(CutText(Bundled(), Words(100), {.window_tokens = 10, .max_tokens = 25})),
            (std::vector<size_t>{10, 10, 5}));
}

TEST(CutText, ControlTokensAreTextUnlessAskedFor) {
  const std::string text = "<｜begin▁of▁sentence｜>a";
  EXPECT_EQ(CutText(Bundled(), text, {.has_specials = true})[0].size(), 2u);
  EXPECT_GT(CutText(Bundled(), text, {})[0].size(), 5u);
}

TEST(CutTexts, TakesTheFirstWindowOfEach) {
  const std::vector<std::string> texts = {Words(30), "a", Words(5), Words(12), Words(3)};
  EXPECT_EQ(SizesOf(CutTexts(Bundled(), texts, {.window_tokens = 10})),
            (std::vector<size_t>{10, 5, 10, 3}));
  EXPECT_EQ(
      SizesOf(CutTexts(Bundled(), texts, {.window_tokens = 10, .first_text = 2, .num_texts = 2})),
      (std::vector<size_t>{5, 10}));
  EXPECT_TRUE(CutTexts(Bundled(), texts, {.first_text = 9}).empty());
}

TEST(ReadWindows, KnowsListsAndLinesByTheNameOfTheFile) {
  const TempDir dir;
  const std::string list = dir.Write("texts.json", R"(["a a a", "a a"])");
  const std::string lines =
      dir.Write("texts.jsonl", "{\"text\": \"a a a\"}\n\n{\"text\": \"a a\"}");
  const std::string plain = dir.Write("texts.txt", "a a a a a");
  EXPECT_EQ(SizesOf(*ReadWindows(Bundled(), list, {})), (std::vector<size_t>{3, 2}));
  EXPECT_EQ(SizesOf(*ReadWindows(Bundled(), lines, {})), (std::vector<size_t>{3, 2}));
  EXPECT_EQ(SizesOf(*ReadWindows(Bundled(), plain, {.window_tokens = 2})),
            (std::vector<size_t>{2, 2}));
}

TEST(ReadWindows, NamesTheEntryThatIsNoText) {
  const TempDir dir;
  const auto error = [&](std::string_view name, std::string_view content) {
    return ReadWindows(Bundled(), dir.Write(name, content), {}).status().message();
  };
  EXPECT_THAT(error("a.json", R"(["a a", 7])"), HasSubstr("a.json: entry 1: expected a text"));
  EXPECT_THAT(error("b.json", "{}"), HasSubstr("expected a list of texts, found object"));
  EXPECT_THAT(error("c.jsonl", "{\"text\": \"a a\"}\n{\"txt\": 1}"), HasSubstr("line 2: text"));
  EXPECT_THAT(error("d.txt", "a"), HasSubstr("at least two tokens"));
  EXPECT_EQ(ReadWindows(Bundled(), dir.File("none.txt"), {}).status().code(),
            StatusCode::kNotFound);
}

}  // namespace
}  // namespace hadal
