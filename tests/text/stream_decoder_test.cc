#include "text/stream_decoder.h"

#include <random>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/support/files.h"
#include "tests/text/small_tokenizer.h"

namespace hadal {
namespace {

std::unique_ptr<Tokenizer> V3Tokenizer() {
  return ParseTokenizer(ReadGoldenJson("text/tokenizer_v3_reduced.json"));
}

// C034: broken characters in the stream.
TEST(StreamDecoder, EmitsWhatMayLeaveAfterEachTokenAndHoldsBackHalfACharacter) {
  const auto tokenizer = V3Tokenizer();
  const Json cases = ReadGoldenJson("text/utf8_stream_steps.json").at("cases");
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& test : cases) {
    StreamDecoder decoder(tokenizer.get());
    for (const Json& step : test.at("steps")) {
      const TokenId id{step.at("id").get<int>()};
      EXPECT_EQ(decoder.Push(id), step.at("emit").get<std::string>()) << step;
    }
    EXPECT_EQ(decoder.Finish(), "");
  }
}

// C035: max_tokens cuts a character.
TEST(StreamDecoder, EndsAHalfCharacterWithAReplacement) {
  const auto tokenizer = V3Tokenizer();
  const Json steps = ReadGoldenJson("text/utf8_stream_steps.json").at("cases").at(0).at("steps");
  for (const size_t limit : {2u, 3u}) {
    StreamDecoder decoder(tokenizer.get());
    std::string text;
    for (size_t i = 0; i < limit; ++i)
      text += decoder.Push(TokenId{steps.at(i).at("id").get<int>()});
    text += decoder.Finish();
    EXPECT_EQ(text, "ok \uFFFD") << limit;
    EXPECT_EQ(decoder.Finish(), "") << "nothing is left";
  }
}

// C007: blanks lost or added around marks.
TEST(StreamDecoder, PutsNothingBetweenAMarkAndItsNeighbours) {
  const Json file = [] {
    Json json = SmallTokenizerJson();
    json["added_tokens"].push_back(AddedTokenJson(1, "</think>", /*is_special=*/false));
    return json;
  }();
  const auto tokenizer = ParseTokenizer(file);
  StreamDecoder decoder(tokenizer.get());
  std::string text;
  for (const TokenId id : tokenizer->EncodeWithSpecials("ok</think>1")) text += decoder.Push(id);
  EXPECT_EQ(text + decoder.Finish(), "ok</think>1");
}

TEST(StreamDecoder, GivesNothingForIdsWithoutAToken) {
  const auto tokenizer = V3Tokenizer();
  StreamDecoder decoder(tokenizer.get());
  EXPECT_EQ(decoder.Push(TokenId{129000}), "");
  EXPECT_EQ(decoder.Push(TokenId{-1}), "");
  EXPECT_EQ(decoder.Finish(), "");
}

TEST(StreamDecoder, JoinsToTheWholeForRandomTokensAndIsAlwaysValid) {
  const auto tokenizer = ParseTokenizer(SmallTokenizerJson(
      {{"\xF0", "\x9F"}, {"\x80", "\x80"}, {"a", "\xE2"}, {"\xE2\x80", "\x8D"}, {"\xE2", "\x80"}}));
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  // Mostly bytes that begin or go on with a character, so that halves are common.
  const std::string bytes = "a\xC3\xA9\xE2\x80\x8D\xF0\x9F\x90\x8B\xED\xA0\xFF\x80\x80";
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids;
    for (int i = 0; i < 12; ++i) {
      const bool is_word = random() % 4 == 0;
      const auto byte = static_cast<uint8_t>(bytes[random() % bytes.size()]);
      ids.push_back(TokenId{is_word ? 266 + static_cast<int>(random() % 5) : byte + 10});
    }
    StreamDecoder decoder(tokenizer.get());
    std::string joined;
    for (const TokenId id : ids) {
      const std::string piece = decoder.Push(id);
      ASSERT_TRUE(IsValidUtf8(piece));
      joined += piece;
    }
    joined += decoder.Finish();
    ASSERT_EQ(joined, RepairUtf8(tokenizer->Decode(ids)));
  }
}

}  // namespace
}  // namespace hadal
