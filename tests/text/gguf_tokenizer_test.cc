#include "text/gguf_tokenizer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/mapped_file.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"
#include "text/gguf_tokenizer_files.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

using testing::HasSubstr;

// A model file whose keys a test may change.
class GgufTokenizers : public testing::Test {
 protected:
  void Open(const std::string& name) {
    auto mapped = MappedFile::Open(GoldenPath("models/" + name + "/model/" + name + ".gguf"));
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    mapped_.emplace(std::move(mapped).value());
    auto file = ParseGguf(mapped_->bytes(), name);
    ASSERT_TRUE(file.ok()) << file.status().message();
    file_ = std::move(file).value();
  }
  void Set(std::string_view key, GgufValue::Any value) {
    Remove(key);
    file_.metadata.emplace_back(key, GgufValue(std::move(value)));
  }
  void Remove(std::string_view key) {
    std::erase_if(file_.metadata, [&](const auto& pair) { return pair.first == key; });
  }
  Status Read() { return ReadGgufTokenizer(file_, "some.gguf").status(); }

  std::optional<MappedFile> mapped_;
  GgufFile file_;
};

TEST_F(GgufTokenizers, MarksAreKnownByContentAndWordsAreNot) {
  Open("gguf-v32");
  const auto found = ReadGgufTokenizer(file_, "some.gguf");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->file.family, PreTokenizerFamily::kDeepSeekV3);
  EXPECT_EQ(found->bos, TokenId{0});
  EXPECT_EQ(found->eos, TokenId{1});
  const auto special = [&](std::string_view content) {
    const auto it = std::ranges::find(found->file.added_tokens, content, &AddedToken::content);
    EXPECT_NE(it, found->file.added_tokens.end()) << content;
    return it->is_special;
  };
  EXPECT_TRUE(special("<｜begin▁of▁sentence｜>"));
  EXPECT_TRUE(special("<|EOT|>"));
  // Control tokens in the file, and yet part of what a reader of answers looks for.
  EXPECT_FALSE(special("<｜User｜>"));
  EXPECT_FALSE(special("<｜fim▁hole｜>"));
  EXPECT_FALSE(special("<think>"));
}

TEST_F(GgufTokenizers, UnusedIdsHaveNoToken) {
  Open("gguf-v32");
  const auto found = ReadGgufTokenizer(file_, "some.gguf");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->file.vocabulary.Has(TokenId{383}));  // "[PAD383]"
  EXPECT_EQ(found->file.vocabulary.size(), 379);
}

TEST_F(GgufTokenizers, OldFilesWithoutPatternsAreKnownByTheirVocabulary) {
  for (const auto& [name, family] :
       {std::pair("gguf-lite-legacy", PreTokenizerFamily::kDeepSeekLlm),
        std::pair("gguf-v32", PreTokenizerFamily::kDeepSeekV3)}) {
    Open(name);
    for (const bool says_default : {true, false}) {
      if (says_default) {
        Set("tokenizer.ggml.pre", std::string_view("default"));
      } else {
        Remove("tokenizer.ggml.pre");
      }
      const auto found = ReadGgufTokenizer(file_, "some.gguf");
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(found->file.family, family) << name;
    }
  }
}

TEST_F(GgufTokenizers, RefusesWithFileAndKey) {
  const auto refusal = [&](std::string_view key, GgufValue::Any value) {
    Open("gguf-v32");
    Set(key, std::move(value));
    return Read().message();
  };
  EXPECT_THAT(refusal("tokenizer.ggml.model", std::string_view("llama")),
              HasSubstr("some.gguf: tokenizer.ggml.model: expected \"gpt2\""));
  EXPECT_THAT(refusal("tokenizer.ggml.pre", std::string_view("qwen2")),
              HasSubstr("tokenizer.ggml.pre"));
  EXPECT_THAT(refusal("tokenizer.ggml.eos_token_id", int64_t{384}), HasSubstr("eos_token_id"));
  EXPECT_THAT(refusal("tokenizer.ggml.tokens", int64_t{1}), HasSubstr("tokens: expected a list"));
  EXPECT_THAT(refusal("tokenizer.ggml.token_type", GgufArray{GgufType::kI32, 0, {}}),
              HasSubstr("one per token"));
  Open("gguf-v32");
  Set("tokenizer.ggml.merges", *file_.Find("tokenizer.ggml.tokens")->AsArray());
  EXPECT_THAT(Read().message(), HasSubstr("merges[0]: expected \"left right\""));
  Remove("tokenizer.ggml.model");
  Remove("tokenizer.ggml.tokens");
  EXPECT_EQ(Read().code(), StatusCode::kNotFound);
}

class GgufTokenizerFiles : public GgufTokenizers,
                           public testing::WithParamInterface<std::string> {};

TEST_P(GgufTokenizerFiles, TheFilesThatAreMadeOfItGiveTheSameIds) {
  Open(GetParam());
  const auto files = MakeTokenizerFiles(file_, "some.gguf");
  ASSERT_TRUE(files.ok()) << files.status().message();
  const TempDir dir;
  dir.Write("tokenizer.json", files->tokenizer);
  dir.Write("tokenizer_config.json", files->config);
  const auto made = Tokenizer::Load(dir.path());
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto own = Tokenizer::Load(GoldenPath("models/" + GetParam() + "/model"));
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ((*own)->vocab_size(), 384);  // unused ids too, which have no bytes
  EXPECT_EQ((*made)->chat_template(), (*own)->chat_template());
  EXPECT_EQ((*made)->bos(), (*own)->bos());
  EXPECT_EQ((*made)->eos(), (*own)->eos());
  EXPECT_EQ((*made)->add_bos_token(), (*own)->add_bos_token());
  for (const char* text :
       {"The rain, 1987.\n\n x=12", "naïve café 今天 été<｜User｜>Hi<think>", ""}) {
    EXPECT_EQ((*made)->Encode(text), (*own)->Encode(text)) << text;
    EXPECT_EQ((*made)->EncodeWithSpecials(text), (*own)->EncodeWithSpecials(text)) << text;
  }
  for (int id = 0; id < (*own)->vocab_size(); ++id) {
    EXPECT_EQ((*made)->TokenBytes(TokenId{id}), (*own)->TokenBytes(TokenId{id})) << id;
    EXPECT_EQ((*made)->IsSpecial(TokenId{id}), (*own)->IsSpecial(TokenId{id})) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GgufTokenizerFiles,
                         testing::Values("gguf-lite-legacy", "gguf-v32"), [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hadal
