#include "text/tokenizer_file.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/small_tokenizer.h"

namespace hadal {
namespace {

using testing::HasSubstr;

Status ParseStatus(std::string_view text) { return ParseTokenizerFile(text, "t.json").status(); }

// One change to a sound file, and what the error must say.
struct Fault {
  const char* name;
  std::function<void(Json*)> make;
  StatusCode code;
  std::vector<std::string> said;
};

void ExpectFaults(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    Json file = SmallTokenizerJson({{"a", "b"}});
    file["added_tokens"].push_back(AddedTokenJson(1, "<end>"));
    fault.make(&file);
    const Status status = ParseStatus(DumpJson(file));
    EXPECT_EQ(status.code(), fault.code) << fault.name << ": " << status.message();
    EXPECT_THAT(status.message(), HasSubstr("t.json: "));
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << fault.name;
    for (const std::string& part : fault.said) {
      EXPECT_THAT(status.message(), HasSubstr(part)) << fault.name;
    }
  }
}

constexpr StatusCode kCorrupt = StatusCode::kCorrupt;
constexpr StatusCode kUnsupported = StatusCode::kUnsupported;

TEST(TokenizerFile, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "null", "[]", "7", "{\"model\": \"\xFF\"}", "{} {}"}) {
    const Status status = ParseStatus(text);
    EXPECT_EQ(status.code(), kCorrupt) << text;
    EXPECT_THAT(status.message(), HasSubstr("t.json: "));
    EXPECT_THAT(status.message(), HasSubstr("expected"));
    EXPECT_THAT(status.message(), HasSubstr("found"));
  }
  const std::string deep(100000, '[');
  EXPECT_EQ(ParseStatus(deep).code(), kCorrupt);
}

TEST(TokenizerFile, RefusesFaultsOfTheVocabulary) {
  ExpectFaults({
      {"no model", [](Json* f) { f->erase("model"); }, kCorrupt, {"model", "an object", "nothing"}},
      {"vocab is a list",
       [](Json* f) { (*f)["model"]["vocab"] = Json::array(); },
       kCorrupt,
       {"model.vocab", "an object", "a list"}},
      {"text as id",
       [](Json* f) { (*f)["model"]["vocab"]["q"] = "x"; },
       kCorrupt,
       {"model.vocab[\"q\"]", "an id from 0", "\"x\""}},
      {"negative id", [](Json* f) { (*f)["model"]["vocab"]["q"] = -1; }, kCorrupt, {"-1"}},
      {"fraction as id", [](Json* f) { (*f)["model"]["vocab"]["q"] = 1.5; }, kCorrupt, {"1.5"}},
      {"huge id",
       [](Json* f) { (*f)["model"]["vocab"]["q"] = 4294967296; },
       kCorrupt,
       {"4294967296"}},
      {"an id past the limit",
       [](Json* f) { (*f)["model"]["vocab"]["q"] = kMaxTokenIds; },
       kCorrupt,
       {std::to_string(kMaxTokenIds)}},
      {"two words of one id",
       [](Json* f) { (*f)["model"]["vocab"]["qq"] = 266; },
       kCorrupt,
       {"model.vocab[\"qq\"]", "266", "\"ab\""}},
      {"an empty word", [](Json* f) { (*f)["model"]["vocab"][""] = 500; }, kCorrupt, {"not empty"}},
      {"id of an added token",
       [](Json* f) { (*f)["model"]["vocab"]["qq"] = 1; },
       kCorrupt,
       {"\"<end>\""}},
      {"another id for an added token",
       [](Json* f) { (*f)["model"]["vocab"]["<end>"] = 500; },
       kCorrupt,
       {"<end>", "1 as in added_tokens", "500"}},
  });
}

TEST(TokenizerFile, RefusesAWordThatStandsTwice) {
  std::string text = DumpJson(SmallTokenizerJson({{"a", "b"}}));
  const std::string entry = "\"ab\":266";
  ASSERT_NE(text.find(entry), std::string::npos);
  text.replace(text.find(entry), entry.size(), entry + ",\"ab\":267");
  const Status status = ParseStatus(text);
  EXPECT_EQ(status.code(), kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("\"ab\" twice"));
}

TEST(TokenizerFile, RefusesFaultsOfTheMerges) {
  const auto set = [](Json merge) {
    return [merge](Json* f) { (*f)["model"]["merges"].push_back(merge); };
  };
  ExpectFaults({
      {"no merges", [](Json* f) { (*f)["model"].erase("merges"); }, kCorrupt, {"model.merges"}},
      {"a number", set(5), kCorrupt, {"model.merges[1]", "found 5"}},
      {"one part", set("ab"), kCorrupt, {"model.merges[1]", "\"ab\""}},
      {"three parts", set("a b c"), kCorrupt, {"\"a b c\""}},
      {"an empty part", set("a "), kCorrupt, {"model.merges[1]"}},
      {"a list of three", set(Json::array({"a", "b", "c"})), kCorrupt, {"a list"}},
      {"a list with a number", set(Json::array({"a", 1})), kCorrupt, {"a list"}},
      {"an unknown word", set("a zz"), kCorrupt, {"words of model.vocab", "\"zz\""}},
      {"an unknown result", set("a c"), kCorrupt, {"a merge that is a word", "\"ac\""}},
  });
}

TEST(TokenizerFile, RefusesFaultsOfTheAddedTokens) {
  const auto add = [](Json token) {
    return [token](Json* f) { (*f)["added_tokens"].push_back(token); };
  };
  ExpectFaults({
      {"not a list",
       [](Json* f) { (*f)["added_tokens"] = 5; },
       kCorrupt,
       {"added_tokens", "a list"}},
      {"not an object", add(7), kCorrupt, {"added_tokens[1]", "an object"}},
      {"no id", add({{"content", "x"}}), kCorrupt, {"added_tokens[1].id", "nothing"}},
      {"no content", add({{"id", 3}}), kCorrupt, {"added_tokens[1].content", "nothing"}},
      {"empty content", add(AddedTokenJson(3, "")), kCorrupt, {"content"}},
      {"endless content", add(AddedTokenJson(3, std::string(2000, 'x'))), kCorrupt, {"1024 bytes"}},
      {"same id", add(AddedTokenJson(1, "<x>")), kCorrupt, {"added_tokens[1].id", "<end>"}},
      {"same content", add(AddedTokenJson(2, "<end>")), kCorrupt, {"added_tokens[1].content"}},
      {"a flag that is none",
       [](Json* f) { (*f)["added_tokens"][0]["special"] = "no"; },
       kCorrupt,
       {"added_tokens[0].special", "true or false"}},
  });
}

TEST(TokenizerFile, RefusesWhatItWouldNotComputeAsTheReference) {
  const auto stage = [](int i, std::string key, Json value) {
    return [=](Json* f) { (*f)["pre_tokenizer"]["pretokenizers"][i][key] = value; };
  };
  ExpectFaults({
      {"normalizer",
       [](Json* f) {
         (*f)["normalizer"] = {{"type", "NFC"}};
       },
       kUnsupported,
       {"normalizer", "\"NFC\""}},
      {"another model",
       [](Json* f) { (*f)["model"]["type"] = "Unigram"; },
       kUnsupported,
       {"model.type", "\"BPE\"", "\"Unigram\""}},
      {"dropout", [](Json* f) { (*f)["model"]["dropout"] = 0.1; }, kUnsupported, {"model.dropout"}},
      {"a suffix",
       [](Json* f) { (*f)["model"]["end_of_word_suffix"] = "</w>"; },
       kUnsupported,
       {"end_of_word_suffix", "</w>"}},
      {"another decoder",
       [](Json* f) { (*f)["decoder"]["type"] = "Metaspace"; },
       kUnsupported,
       {"decoder.type"}},
      {"no pre-tokenizer",
       [](Json* f) { (*f)["pre_tokenizer"] = nullptr; },
       kCorrupt,
       {"pre_tokenizer", "null"}},
      {"another stage",
       stage(0, "type", "Whitespace"),
       kUnsupported,
       {"pretokenizers[0].type", "Whitespace"}},
      {"another behaviour",
       stage(0, "behavior", "Removed"),
       kUnsupported,
       {"pretokenizers[0].behavior", "Removed"}},
      {"inverted", stage(0, "invert", true), kUnsupported, {"invert"}},
      {"a plain string", stage(0, "pattern", {{"String", " "}}), kUnsupported, {"a Regex"}},
      {"another pattern",
       stage(2, "pattern", {{"Regex", R"(\w+)"}}),
       kUnsupported,
       {"pattern 3", R"(\\w+)"}},
      {"prefix space", stage(3, "add_prefix_space", true), kUnsupported, {"add_prefix_space"}},
      {"a second pattern inside", stage(3, "use_regex", true), kUnsupported, {"use_regex"}},
      {"no byte level",
       [](Json* f) {
         Json& stages = (*f)["pre_tokenizer"]["pretokenizers"];
         stages.erase(stages.size() - 1);
       },
       kCorrupt,
       {"ByteLevel"}},
      {"an unknown token where bytes are missing",
       [](Json* f) {
         (*f)["model"]["vocab"].erase("q");
         (*f)["model"]["unk_token"] = "<end>";
       },
       kUnsupported,
       {"model.unk_token"}},
  });
}

TEST(TokenizerFile, ReadsMergesInBothSpellings) {
  Json file = SmallTokenizerJson({{"a", "b"}, {" ", "ab"}});
  file["model"]["merges"] = Json::array({"a b", "\u0120 ab"});
  const auto strings = ParseTokenizer(file);
  file["model"]["merges"] = Json::array({Json::array({"a", "b"}), "\u0120 ab"});
  const auto mixed = ParseTokenizer(file);
  EXPECT_EQ(Values(strings->Encode(" ab")), std::vector<int>{267});
  EXPECT_EQ(Values(mixed->Encode(" ab")), std::vector<int>{267});
}

TEST(TokenizerFile, TakesAnAddedTokenThatIsAWordTooOutOfTheMerges) {
  Json file = SmallTokenizerJson({{"<", "s"}, {"<s", ">"}});
  file["added_tokens"].push_back(AddedTokenJson(267, "<s>"));
  file["model"]["ignore_merges"] = true;
  const auto tokenizer = ParseTokenizer(file);
  EXPECT_EQ(Values(tokenizer->EncodeWithSpecials("<s>")), std::vector<int>{267});
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("<s>")), "<s>");
  for (const TokenId id : tokenizer->Encode("<s>")) EXPECT_NE(id, TokenId{267});
}

TEST(TokenizerFile, TakesWordsWholeWhereTheFileIgnoresMerges) {
  Json file = SmallTokenizerJson();
  file["model"]["vocab"]["abc"] = 300;
  EXPECT_EQ(Values(ParseTokenizer(file)->Encode("abc")), (std::vector<int>{107, 108, 109}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(Values(ParseTokenizer(file)->Encode("abc")), std::vector<int>{300});
}

}  // namespace
}  // namespace hadal
