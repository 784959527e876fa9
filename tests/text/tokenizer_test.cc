#include "text/tokenizer.h"

#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "tests/support/files.h"
#include "tests/support/temp_dir.h"
#include "tests/text/small_tokenizer.h"

namespace hadal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What the golden texts need of the V3 vocabulary and of deepseek-llm's, with the real ids;
// tests/golden/text/README.md.
Json V3File() { return ReadGoldenJson("text/tokenizer_v3_reduced.json"); }
Json LlmFile() { return ReadGoldenJson("text/tokenizer_llm_reduced.json"); }

// V2 has the words and merges of deepseek-llm, and control tokens where that has single letters.
Json V2File() {
  Json file = LlmFile();
  Json kept = Json::array();
  for (const Json& token : file["added_tokens"]) {
    if (token["special"].get<bool>()) kept.push_back(token);
  }
  file["added_tokens"] = kept;
  return file;
}

std::unique_ptr<Tokenizer> LoadTiny() {
  auto tokenizer = Tokenizer::Load(HADAL_SOURCE_DIR "/models/tiny");
  if (tokenizer.ok()) return std::move(tokenizer).value();
  ADD_FAILURE() << tokenizer.status().message();
  return nullptr;
}

std::vector<TokenId> ToIds(const Json& numbers) {
  std::vector<TokenId> ids;
  for (const Json& number : numbers) ids.push_back(TokenId{number.get<int>()});
  return ids;
}

void ExpectVectors(const Tokenizer& tokenizer, const Json& vectors, std::string_view key,
                   bool has_specials) {
  ASSERT_GE(vectors.size(), 18u);
  for (const Json& vector : vectors) {
    const auto text = vector.at("text").get<std::string>();
    const std::vector<TokenId> expected = ToIds(vector.at(std::string(key)));
    EXPECT_EQ(has_specials ? tokenizer.EncodeWithSpecials(text) : tokenizer.Encode(text), expected)
        << text;
    EXPECT_EQ(tokenizer.Decode(expected), text);
  }
}

// Texts that reach every class of the pre-tokenizers and every length of UTF-8.
std::string RandomText(std::mt19937* random, size_t num_characters) {
  static const std::vector<char32_t> kCommon = {
      ' ',    ' ',    '\n',   '\r',   '\t',   'a',    'b',    'Z',    '0',     '7',     '.',
      '\'',   '<',    '+',    '_',    0,      0x85,   0xA0,   0xE9,   0xFC,    0x301,   0x416,
      0x5D0,  0x200D, 0x2028, 0x3000, 0x3042, 0x30FB, 0x4E2D, 0x9FA6, 0xAC00,  0xFEFF,  0xFF5C,
      0xFF5E, 0x2581, 0x2126, 0x661,  0xBD,   0x20AC, 0x378,  0xE000, 0x1F996, 0x10400, 0x10FFFF};
  std::string text;
  for (size_t i = 0; i < num_characters; ++i) {
    char32_t c = kCommon[(*random)() % kCommon.size()];
    if ((*random)() % 8 == 0) c = static_cast<char32_t>((*random)() % 0xD800);
    AppendCodePoint(c, &text);
  }
  return text;
}

void RunOnSmallStack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  void* argument = const_cast<std::function<void()>*>(&body);
  ASSERT_EQ(pthread_create(&thread, &attributes, run, argument), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// 252 texts with the ids that four independent implementations agree on.
TEST(Tokenizer, GivesTheReferenceIdsOnEveryOracleLine) {
  const auto tokenizer = ParseTokenizer(V3File());
  std::ifstream lines(GoldenPath("text/tokenizer_v3.jsonl"));
  std::string line;
  Json vectors = Json::array();
  while (std::getline(lines, line)) vectors.push_back(ParseJson(line, "oracle").value());
  ASSERT_EQ(vectors.size(), 252u);
  ExpectVectors(*tokenizer, vectors, "ids", /*has_specials=*/true);
}

TEST(Tokenizer, GivesTheV3IdsOfTheSpecification) {
  ExpectVectors(*ParseTokenizer(V3File()), ReadGoldenJson("text/spec_examples.json").at("tok_v3"),
                "ids", /*has_specials=*/true);
}

TEST(Tokenizer, GivesTheV2IdsOfTheSpecification) {
  ExpectVectors(*ParseTokenizer(V2File()), ReadGoldenJson("text/spec_examples.json").at("tok_v2"),
                "ids", /*has_specials=*/true);
}

// C001: text loses its spaces; the class name in the config must change nothing.
TEST(Tokenizer, KeepsSpacesWhateverTheConfigCallsItsClass) {
  const TempDir folder;
  folder.Write("tokenizer.json", DumpJson(V3File()));
  folder.Write("tokenizer_config.json",
               R"({"tokenizer_class": "LlamaTokenizerFast", "legacy": true, "unk_token": null})");
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ExpectVectors(*tokenizer.value(), ReadGoldenJson("text/tok_vectors.json").at("vectors"), "v3_ids",
                /*has_specials=*/false);
}

// C002: long numbers.
TEST(Tokenizer, CutsLongNumbersByThreeInV3AndByOneInV2) {
  const auto v3 = ParseTokenizer(V3File()), llm = ParseTokenizer(LlmFile());
  EXPECT_THAT(Values(v3->Encode("12345678901")), ElementsAre(6895, 18009, 25744, 2616));
  EXPECT_THAT(Values(llm->Encode("12345678901")),
              ElementsAre(16, 17, 18, 19, 20, 21, 22, 23, 24, 15, 16));
}

// C003: small u with diaeresis is a token of its own in deepseek-llm, in anybody's text.
TEST(Tokenizer, KnowsTheLettersThatDeepSeekLlmAdded) {
  const auto tokenizer = ParseTokenizer(LlmFile());
  ExpectVectors(*tokenizer, ReadGoldenJson("text/tok_vectors.json").at("vectors"), "llm100k_ids",
                /*has_specials=*/false);
  EXPECT_THAT(Values(tokenizer->Encode("F\u00fc\u00dfe \u00fcber \u00d6l")),
              ElementsAre(37, 100014, 31569, 68, 207, 100014, 701, 59639, 75));
}

// C004: one long run kills the server. Quadratic time would not end within the test's limit.
TEST(Tokenizer, TakesLongRunsOnASmallStack) {
  const auto tiny = LoadTiny(), llm = ParseTokenizer(LlmFile());
  const auto run = [](size_t count, std::string_view unit) {
    std::string text;
    while (count-- > 0) text += unit;
    return text;
  };
  const std::vector<std::string> texts = {run(131072, "Z"),
                                          run(43000, "A"),
                                          run(100000, " "),
                                          run(50000, "\n"),
                                          run(1000000, " ") + "1",
                                          run(1000000, " ") + "x",
                                          run(300000, "\u00a0") + "1",
                                          run(100000, "\x01"),
                                          run(100000, "\u0301"),
                                          run(200000, "<"),
                                          run(50000, "\u4e00"),
                                          "{\"result\": \"" + run(131072, "Z") + "\"}"};
  for (const Tokenizer* tokenizer : {tiny.get(), llm.get()}) {
    for (const std::string& text : texts) {
      std::string decoded;
      RunOnSmallStack([&] { decoded = tokenizer->Decode(tokenizer->Encode(text)); });
      ASSERT_TRUE(decoded == text) << text.substr(0, 20) << " " << text.size();
      RunOnSmallStack([&] { decoded = tokenizer->Decode(tokenizer->EncodeWithSpecials(text)); });
      ASSERT_TRUE(decoded == text) << text.substr(0, 20) << " " << text.size();
    }
  }
}

// C005: text in a message is read as control marks.
TEST(Tokenizer, NeverReadsMessageTextAsControlMarks) {
  const auto tokenizer = ParseTokenizer(V3File());
  const Json vectors = ReadGoldenJson("text/tok_markup_vs_content.json").at("vectors");
  ASSERT_EQ(vectors.size(), 4u);
  for (const Json& vector : vectors) {
    const auto text = vector.at("text").get<std::string>();
    const std::vector<TokenId> content = ToIds(vector.at("as_message_content_v3"));
    EXPECT_EQ(tokenizer->Encode(text), content) << text;
    EXPECT_EQ(tokenizer->Encode(Prompt{{text, true}}), ToIds(vector.at("as_template_markup_v3")))
        << text;
    std::vector<TokenId> turn = {TokenId{128803}};
    turn.insert(turn.end(), content.begin(), content.end());
    turn.push_back(TokenId{128804});
    EXPECT_EQ(tokenizer->Encode(Prompt{
                  {"<\uFF5CUser\uFF5C>", true}, {text, false}, {"<\uFF5CAssistant\uFF5C>", true}}),
              turn)
        << text;
  }
}

TEST(Tokenizer, DoesNotPutAMarkTogetherFromMarkupAndText) {
  const auto tokenizer = ParseTokenizer(V3File());
  for (size_t cut = 1; cut < 12; ++cut) {
    const std::string mark = "<\uFF5CUser\uFF5C>";
    const Prompt halves = {{mark.substr(0, cut), true}, {mark.substr(cut), false}};
    for (const TokenId id : tokenizer->Encode(halves)) EXPECT_NE(id, TokenId{128803}) << cut;
    const Prompt joined = {{mark.substr(0, cut), true}, {mark.substr(cut), true}};
    EXPECT_THAT(Values(tokenizer->Encode(joined)), ElementsAre(128803)) << cut;
  }
}

// The reference sees only the rendered string: a word may reach over the border.
TEST(Tokenizer, CutsWordsAcrossTheBorderOfMarkupAndTextAsInTheRenderedString) {
  const auto tokenizer = LoadTiny();
  const Prompt prompt = {{"<\uFF5CUser\uFF5C>He", true}, {"llo world", false}, {" wide\n\n", true}};
  EXPECT_EQ(tokenizer->Encode(prompt), tokenizer->EncodeWithSpecials(PromptText(prompt)));
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> marks = {
      "<\uFF5CUser\uFF5C>", "<think>", "</think>", "\n\n", " ", "a"};
  for (int round = 0; round < 300; ++round) {
    Prompt parts;
    for (int i = 0; i < 6; ++i) {
      if (random() % 2 == 0) parts.push_back({marks[random() % marks.size()], true});
      parts.push_back({RandomText(&random, random() % 4), random() % 3 == 0});
    }
    ASSERT_EQ(tokenizer->Encode(parts), tokenizer->EncodeWithSpecials(PromptText(parts)))
        << PromptText(parts);
  }
}

TEST(Tokenizer, JoinsPartsOfTheSameKindHoweverTheyAreCut) {
  const auto tokenizer = LoadTiny();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const std::string text = RandomText(&random, 12) + "<think>" + RandomText(&random, 12);
    const bool is_markup = random() % 2 == 0;
    Prompt parts;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random() % 5;  // may cut a character
      parts.push_back({text.substr(at, length), is_markup});
      at += length;
    }
    ASSERT_EQ(tokenizer->Encode(parts), tokenizer->Encode(Prompt{{text, is_markup}})) << text;
  }
}

// C007: ids decoded one at a time and joined.
TEST(Tokenizer, DecodesOneByOneToTheSameBytes) {
  const auto tokenizer = ParseTokenizer(V3File());
  const Json vectors = ReadGoldenJson("text/tok_vectors.json").at("vectors");
  ASSERT_FALSE(vectors.empty());
  for (const Json& vector : vectors) {
    std::string joined;
    for (const TokenId id : ToIds(vector.at("v3_ids"))) joined += tokenizer->TokenBytes(id);
    EXPECT_EQ(joined, vector.at("text").get<std::string>());
  }
}

// C008: begin and end ids of one family member.
TEST(Tokenizer, TakesBeginAndEndFromTheConfigByName) {
  Json file = SmallTokenizerJson();
  file["added_tokens"] = Json::array({AddedTokenJson(7, "<bos>"), AddedTokenJson(9, "<eos>")});
  const TempDir folder;
  folder.Write("tokenizer.json", DumpJson(file));
  folder.Write("tokenizer_config.json",
               R"({"bos_token": "<bos>", "eos_token": {"content": "<eos>"}, "add_bos_token": true,
                   "chat_template": [{"name": "default", "template": "T"}]})");
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer.value()->bos(), TokenId{7});
  EXPECT_EQ(tokenizer.value()->eos(), TokenId{9});
  EXPECT_TRUE(tokenizer.value()->add_bos_token());
  EXPECT_EQ(tokenizer.value()->chat_template(), "T");
  folder.Write("chat_template.jinja", "J");
  EXPECT_EQ(Tokenizer::Load(folder.path()).value()->chat_template(), "J");
}

// C009: a vocabulary without a line end.
TEST(Tokenizer, LeavesOutALineEndThatHasNoToken) {
  Json file = SmallTokenizerJson({{"a", "b"}});
  file["model"]["vocab"].erase(Spelling("\n"));
  const auto tokenizer = ParseTokenizer(file);
  EXPECT_EQ(tokenizer->Encode("\n"), std::vector<TokenId>{});
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("x\ny")), "xy");
  EXPECT_FALSE(tokenizer->HasToken(TokenId{'\n' + 10}));
}

// C010: more rows in the embedding than tokens.
TEST(Tokenizer, GivesNothingForPaddingRowsAndHoles) {
  const auto tokenizer = ParseTokenizer(V3File());
  EXPECT_EQ(tokenizer->vocab_size(), 128815);
  for (const int id : {128815, 129000, 129279, INT32_MAX, -1, 128500}) {
    EXPECT_FALSE(tokenizer->HasToken(TokenId{id})) << id;
    EXPECT_EQ(tokenizer->TokenBytes(TokenId{id}), "") << id;
    EXPECT_FALSE(tokenizer->IsSpecial(TokenId{id})) << id;
  }
  const std::vector<TokenId> ids = {TokenId{19923}, TokenId{129000}, TokenId{3}};
  EXPECT_EQ(tokenizer->Decode(ids), "Hello!");
}

TEST(Tokenizer, TellsWordsAddedAndSpecialTokensApart) {
  const auto tokenizer = ParseTokenizer(V3File());
  const TokenId user = tokenizer->FindAddedToken("<\uFF5CUser\uFF5C>").value();
  const TokenId end = tokenizer->FindAddedToken("<\uFF5Cend\u2581of\u2581sentence\uFF5C>").value();
  EXPECT_TRUE(tokenizer->IsAddedToken(user));
  EXPECT_FALSE(tokenizer->IsSpecial(user));
  EXPECT_TRUE(tokenizer->IsAddedToken(end));
  EXPECT_TRUE(tokenizer->IsSpecial(end));
  EXPECT_FALSE(tokenizer->IsAddedToken(TokenId{19923}));
  EXPECT_EQ(tokenizer->FindAddedToken("Hello"), std::nullopt);
}

TEST(Tokenizer, GivesBackEveryValidText) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto tiny = LoadTiny(), llm = ParseTokenizer(LlmFile()), v3 = ParseTokenizer(V3File());
  for (int round = 0; round < 500; ++round) {
    const std::string text = RandomText(&random, random() % 60);
    for (const Tokenizer* tokenizer : {tiny.get(), llm.get(), v3.get()}) {
      ASSERT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
      ASSERT_EQ(tokenizer->Decode(tokenizer->EncodeWithSpecials(text)), text);
    }
  }
}

TEST(Tokenizer, ReplacesIllFormedBytes) {
  const auto tokenizer = LoadTiny();
  const std::string broken = "a\xF0\x9F z\xC0\xAF\xED\xA0\x80";
  const std::string repaired = RepairUtf8(broken);
  EXPECT_EQ(tokenizer->Encode(broken), tokenizer->Encode(repaired));
  EXPECT_EQ(tokenizer->EncodeWithSpecials(broken), tokenizer->EncodeWithSpecials(repaired));
  EXPECT_EQ(tokenizer->Encode(Prompt{{broken, false}}), tokenizer->Encode(repaired));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(broken)), repaired);
}

TEST(Tokenizer, NeedsNoConfigBesideIt) {
  const TempDir folder;
  folder.Write("tokenizer.json", DumpJson(SmallTokenizerJson()));
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer.value()->bos(), std::nullopt);
  EXPECT_FALSE(tokenizer.value()->add_bos_token());
  EXPECT_EQ(tokenizer.value()->chat_template(), "");
}

TEST(Tokenizer, SaysWhatIsWrongWithTheFolder) {
  const TempDir folder;
  EXPECT_EQ(Tokenizer::Load(folder.path()).status().code(), StatusCode::kNotFound);
  folder.Write("tokenizer.json", DumpJson(SmallTokenizerJson()));
  folder.Write("tokenizer_config.json", R"({"bos_token": "<none>"})");
  const Status unknown = Tokenizer::Load(folder.path()).status();
  EXPECT_EQ(unknown.code(), StatusCode::kCorrupt);
  EXPECT_THAT(unknown.message(), HasSubstr("tokenizer_config.json: bos_token"));
  EXPECT_THAT(unknown.message(), HasSubstr("<none>"));
  folder.Write("tokenizer_config.json", "[]");
  EXPECT_EQ(Tokenizer::Load(folder.path()).status().code(), StatusCode::kCorrupt);
  folder.Write("tokenizer_config.json", R"({"add_bos_token": "yes"})");
  EXPECT_THAT(Tokenizer::Load(folder.path()).status().message(), HasSubstr("add_bos_token"));
}

}  // namespace
}  // namespace hadal
