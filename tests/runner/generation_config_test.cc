#include "runner/generation_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace hadal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelInfo InfoOf(const char* text, std::vector<TokenId> eos = {{1}}) {
  ModelInfo info;
  info.eos_tokens = std::move(eos);
  const Status status = ReadGenerationConfig(Json::parse(text), "generation_config.json", &info);
  EXPECT_TRUE(status.ok()) << status.message();
  return info;
}

std::string Refusal(const char* text) {
  ModelInfo info;
  return ReadGenerationConfig(Json::parse(text), "generation_config.json", &info).message();
}

// C008: a list of end ids ends on any of them.
TEST(GenerationConfig, AddsOneEndTokenOrAListOfThem) {
  EXPECT_THAT(InfoOf(R"({"eos_token_id": 9})").eos_tokens, ElementsAre(TokenId{1}, TokenId{9}));
  EXPECT_THAT(InfoOf(R"({"eos_token_id": [9, 1, 7, 9]})").eos_tokens,
              ElementsAre(TokenId{1}, TokenId{9}, TokenId{7}));
  EXPECT_THAT(InfoOf("{}").eos_tokens, ElementsAre(TokenId{1}));
  EXPECT_THAT(InfoOf("null").eos_tokens, ElementsAre(TokenId{1}));
}

TEST(GenerationConfig, SamplesWhereTheFileSaysSo) {
  const SamplingParams sampling =
      InfoOf(R"({"temperature": 0.6, "top_p": 0.95, "top_k": 40, "min_p": 0.05})").default_sampling;
  EXPECT_FLOAT_EQ(sampling.temperature, 0.6f);
  EXPECT_FLOAT_EQ(sampling.top_p, 0.95f);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_FLOAT_EQ(sampling.min_p, 0.05f);
  EXPECT_FLOAT_EQ(InfoOf(R"({"do_sample": true})").default_sampling.temperature, 1.0f);
}

TEST(GenerationConfig, IsGreedyOtherwise) {
  for (const char* text : {"{}", "null", R"({"do_sample": false, "temperature": 0.6})",
                           R"({"top_p": 0.5})", R"({"temperature": null})"}) {
    EXPECT_EQ(InfoOf(text).default_sampling.temperature, 0.0f) << text;
    EXPECT_EQ(InfoOf(text).default_sampling.top_p, 1.0f) << text;
  }
}

TEST(GenerationConfig, FaultsNameTheKey) {
  EXPECT_EQ(Refusal(R"({"temperature": -1})"),
            "generation_config.json: temperature: expected a number from 0 to 100, found -1");
  EXPECT_THAT(Refusal(R"({"top_p": 2})"), HasSubstr("top_p"));
  EXPECT_THAT(Refusal(R"({"top_k": -1})"), HasSubstr("top_k"));
  EXPECT_THAT(Refusal(R"({"do_sample": 1})"), HasSubstr("do_sample"));
  // What no request may ask for is no default either.
  EXPECT_THAT(Refusal(R"({"repetition_penalty": 0.001})"), HasSubstr("repetition_penalty"));
  for (const char* ids : {"-1", "[1, -1]", "1.5", "\"1\"", "[[1]]", "4294967296", "{}"}) {
    EXPECT_THAT(Refusal((std::string(R"({"eos_token_id": )") + ids + "}").c_str()),
                HasSubstr("eos_token_id: expected a token id or a list of them"))
        << ids;
  }
}

}  // namespace
}  // namespace hadal
