#include "text/gguf_tokenizer_files.h"

#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "text/gguf_tokenizer.h"
#include "text/pattern_family.h"

namespace hadal {
namespace {

std::vector<std::string_view> TextList(const GgufFile& file, std::string_view key) {
  return file.Find(key)->AsArray()->Strings();  // ReadGgufTokenizer has seen that it is one
}

Json PreTokenizerStages(PreTokenizerFamily family) {
  Json stages = Json::array();
  for (const std::string& pattern : PublishedPatterns(family)) {
    stages.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}});
  }
  stages.push_back({{"type", "ByteLevel"},
                    {"add_prefix_space", false},
                    {"trim_offsets", true},
                    {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(stages)}};
}

Json AddedTokenList(const std::vector<AddedToken>& tokens) {
  Json list = Json::array();
  for (const AddedToken& token : tokens) {
    list.push_back({{"id", token.id.value},
                    {"content", token.content},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", token.is_special}});
  }
  return list;
}

// Words only: marks stand among the added tokens.
Json Words(const GgufFile& file, const GgufTokenizer& tokenizer) {
  std::unordered_set<int32_t> marks;
  for (const AddedToken& token : tokenizer.file.added_tokens) marks.insert(token.id.value);
  Json words = Json::object();
  const std::vector<std::string_view> tokens = TextList(file, "tokenizer.ggml.tokens");
  for (size_t i = 0; i < tokens.size(); ++i) {
    const TokenId id{static_cast<int32_t>(i)};
    if (tokenizer.file.vocabulary.Has(id) && !marks.contains(id.value)) {
      words.push_back({std::string(tokens[i]), id.value});
    }
  }
  return words;
}

}  // namespace

Result<TokenizerFiles> MakeTokenizerFiles(const GgufFile& file, const std::string& what) {
  ASSIGN_OR_RETURN(const GgufTokenizer tokenizer, ReadGgufTokenizer(file, what));
  Json merges = Json::array();
  for (const std::string_view merge : TextList(file, "tokenizer.ggml.merges")) {
    merges.push_back(std::string(merge));
  }
  const Json root = {{"version", "1.0"},
                     {"added_tokens", AddedTokenList(tokenizer.file.added_tokens)},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", PreTokenizerStages(tokenizer.file.family)},
                     {"decoder", {{"type", "ByteLevel"}}},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"byte_fallback", false},
                       {"vocab", Words(file, tokenizer)},
                       {"merges", std::move(merges)}}}};
  Json config = {{"add_bos_token", tokenizer.add_bos_token}};
  const auto name = [&](const std::optional<TokenId>& id) {
    return std::string(tokenizer.file.vocabulary.Bytes(*id));
  };
  if (tokenizer.bos) config["bos_token"] = name(tokenizer.bos);
  if (tokenizer.eos) config["eos_token"] = name(tokenizer.eos);
  if (!tokenizer.chat_template.empty()) config["chat_template"] = tokenizer.chat_template;
  return TokenizerFiles{DumpJson(root) + "\n", DumpJson(config) + "\n"};
}

}  // namespace hadal
