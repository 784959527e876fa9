// A tokenizer.json made by hand: the bytes of UTF-8 as words, and what a test adds.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer.h"

namespace hadal {

// `bytes` in the byte-level alphabet.
inline std::string Spelling(std::string_view bytes) {
  std::string spelling;
  for (const char c : bytes) AppendCodePoint(ByteSymbol(static_cast<uint8_t>(c)), &spelling);
  return spelling;
}

inline Json SplitStage(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

// The words are the bytes (id = byte + 10) and then one for each merge, from id 266 on.
// `merges` are pairs of texts.
inline Json SmallTokenizerJson(
    const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  const std::string v3_word =
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
      R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  Json vocab = Json::object(), merge_list = Json::array();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[Spelling(std::string(1, static_cast<char>(byte)))] = byte + 10;
  }
  int id = 266;
  for (const auto& [left, right] : merges) {
    vocab[Spelling(left + right)] = id++;
    merge_list.push_back(Json::array({Spelling(left), Spelling(right)}));
  }
  return {{"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             Json::array(
                 {SplitStage(R"(\p{N}{1,3})"),
                  SplitStage("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                  SplitStage(v3_word),
                  {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}})}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merge_list}}}};
}

inline Json AddedTokenJson(int id, std::string_view content, bool is_special = true) {
  return {{"id", id},        {"content", content},   {"special", is_special}, {"lstrip", false},
          {"rstrip", false}, {"single_word", false}, {"normalized", false}};
}

// Fails the test and returns null when the file is refused.
inline std::unique_ptr<Tokenizer> ParseTokenizer(const Json& file) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Parse(DumpJson(file), "test");
  if (tokenizer.ok()) return std::move(tokenizer).value();
  ADD_FAILURE() << tokenizer.status().message();
  return nullptr;
}

inline std::vector<int> Values(const std::vector<TokenId>& ids) {
  std::vector<int> values;
  for (const TokenId id : ids) values.push_back(id.value);
  return values;
}

}  // namespace hadal
