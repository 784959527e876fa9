#include "text/tokenizer_file.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "text/byte_alphabet.h"
#include "text/pattern_family.h"

namespace hadal {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;
using Found = simdjson::simdjson_result<element>;

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 48;
  if (text.size() <= kShown) return fmt::format("{:?}", text);
  size_t cut = kShown;
  while ((static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) --cut;
  return fmt::format("{:?}...", text.substr(0, cut));
}

std::string Shown(const Found& found) {
  element value;
  if (found.get(value) != simdjson::SUCCESS) return "nothing";
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return Quoted(text);
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return simdjson::minify(value);
}

Found Wrap(element value) { return Found(element(value)); }

bool IsAbsent(const Found& found) {
  element value;
  return found.get(value) != simdjson::SUCCESS || value.is_null();
}

bool IsString(const Found& found, std::string_view expected) {
  std::string_view text;
  return found.get(text) == simdjson::SUCCESS && text == expected;
}

bool IsFalse(const Found& found) {
  bool value = true;
  return found.get(value) == simdjson::SUCCESS && !value;
}

// Reads one file; every method returns what is wrong with its part.
class FileReader {
 public:
  explicit FileReader(std::string_view what) : what_(what) {}

  Result<TokenizerFile> Read(std::string_view text);

 private:
  Status Corrupt(std::string_view key, std::string_view expected, std::string_view found) const {
    return Status::Corrupt(
        fmt::format("{}: {}: expected {}, found {}", what_, key, expected, found));
  }
  Status Unsupported(std::string_view key, std::string_view expected, const Found& found) const {
    return Status::Unsupported(
        fmt::format("{}: {}: expected {}, found {}", what_, key, expected, Shown(found)));
  }

  Status ReadObject(const Found& found, std::string_view key, object* value) const;
  Status ReadArray(const Found& found, std::string_view key, array* value) const;
  Status ReadId(const Found& found, std::string_view key, TokenId* id) const;
  Status ReadFlag(const object& token, std::string_view name, std::string_view key,
                  bool* value) const;

  Status CheckNormalizer(const Found& normalizer) const;
  Status CheckByteLevel(const object& stage, std::string_view key) const;
  Status ReadPreTokenizer(const object& root);
  Status ReadStage(const object& stage, std::string_view key, std::vector<std::string>* patterns);
  Status ReadAddedTokens(const Found& found);
  Status ReadAddedToken(const object& entry, std::string_view key);
  Status ReadModel(const object& model);
  Status ReadVocabulary(const object& vocab);
  Status AddVocabularyEntry(std::string_view spelling, TokenId id);
  Status ReadMerges(const array& merges);
  Status AddMerge(std::string_view left, std::string_view right, size_t merge_idx);
  Status CheckUnknowns(const object& model) const;
  bool HasAllBytesOfUtf8() const;

  std::string_view what_;
  TokenizerFile file_;
  std::unordered_map<std::string, TokenId> added_;  // by content
};

Status FileReader::ReadObject(const Found& found, std::string_view key, object* value) const {
  if (found.get(*value) == simdjson::SUCCESS) return Status::Ok();
  return Corrupt(key, "an object", Shown(found));
}

Status FileReader::ReadArray(const Found& found, std::string_view key, array* value) const {
  if (found.get(*value) == simdjson::SUCCESS) return Status::Ok();
  return Corrupt(key, "a list", Shown(found));
}

Status FileReader::ReadId(const Found& found, std::string_view key, TokenId* id) const {
  int64_t value = -1;
  if (found.get(value) != simdjson::SUCCESS || value < 0 || value >= kMaxTokenIds) {
    return Corrupt(key, fmt::format("an id from 0 to {}", kMaxTokenIds - 1), Shown(found));
  }
  *id = TokenId{static_cast<int32_t>(value)};
  return Status::Ok();
}

Status FileReader::ReadFlag(const object& token, std::string_view name, std::string_view key,
                            bool* value) const {
  const Found found = token[name];
  if (IsAbsent(found) || found.get(*value) == simdjson::SUCCESS) return Status::Ok();
  return Corrupt(fmt::format("{}.{}", key, name), "true or false", Shown(found));
}

Status FileReader::CheckNormalizer(const Found& normalizer) const {
  if (IsAbsent(normalizer)) return Status::Ok();
  array steps;
  if (IsString(normalizer["type"], "Sequence") &&
      normalizer["normalizers"].get(steps) == simdjson::SUCCESS && steps.size() == 0) {
    return Status::Ok();
  }
  return Unsupported("normalizer", "none, or an empty Sequence", normalizer["type"]);
}

Status FileReader::CheckByteLevel(const object& stage, std::string_view key) const {
  for (const std::string_view flag : {"add_prefix_space", "use_regex"}) {
    if (!IsFalse(stage[flag])) {
      return Unsupported(fmt::format("{}.{}", key, flag), "false", stage[flag]);
    }
  }
  return Status::Ok();
}

Status FileReader::ReadStage(const object& stage, std::string_view key,
                             std::vector<std::string>* patterns) {
  if (IsString(stage["type"], "Digits")) {
    bool is_one_by_one = false;
    const bool is_given = stage["individual_digits"].get(is_one_by_one) == simdjson::SUCCESS;
    patterns->push_back(is_given && is_one_by_one ? R"(\p{N})" : R"(\p{N}+)");
    return Status::Ok();
  }
  if (!IsString(stage["type"], "Split")) {
    return Unsupported(fmt::format("{}.type", key), "Split, Digits or ByteLevel", stage["type"]);
  }
  std::string_view pattern;
  if (stage["pattern"]["Regex"].get(pattern) != simdjson::SUCCESS) {
    return Unsupported(fmt::format("{}.pattern", key), "a Regex", stage["pattern"]);
  }
  if (!IsString(stage["behavior"], "Isolated")) {
    return Unsupported(fmt::format("{}.behavior", key), "Isolated", stage["behavior"]);
  }
  if (!IsAbsent(stage["invert"]) && !IsFalse(stage["invert"])) {
    return Unsupported(fmt::format("{}.invert", key), "false", stage["invert"]);
  }
  patterns->emplace_back(pattern);
  return Status::Ok();
}

Status FileReader::ReadPreTokenizer(const object& root) {
  object pre_tokenizer;
  RETURN_IF_ERROR(ReadObject(root["pre_tokenizer"], "pre_tokenizer", &pre_tokenizer));
  if (!IsString(pre_tokenizer["type"], "Sequence")) {
    return Unsupported("pre_tokenizer.type", "Sequence", pre_tokenizer["type"]);
  }
  array stages;
  const std::string list_key = "pre_tokenizer.pretokenizers";
  RETURN_IF_ERROR(ReadArray(pre_tokenizer["pretokenizers"], list_key, &stages));
  std::vector<std::string> patterns;
  bool has_byte_level = false;
  size_t stage_idx = 0;
  for (const element item : stages) {
    const std::string key = fmt::format("{}[{}]", list_key, stage_idx++);
    object stage;
    RETURN_IF_ERROR(ReadObject(Wrap(item), key, &stage));
    if (has_byte_level) return Unsupported(key, "ByteLevel as the last stage", stage["type"]);
    if (IsString(stage["type"], "ByteLevel")) {
      RETURN_IF_ERROR(CheckByteLevel(stage, key));
      has_byte_level = true;
    } else {
      RETURN_IF_ERROR(ReadStage(stage, key, &patterns));
    }
  }
  if (!has_byte_level) return Corrupt(list_key, "ByteLevel as the last stage", "none");
  ASSIGN_OR_RETURN(file_.family, RecognisePatterns(patterns, what_));
  return Status::Ok();
}

Status FileReader::ReadAddedToken(const object& entry, std::string_view key) {
  AddedToken token;
  RETURN_IF_ERROR(ReadId(entry["id"], fmt::format("{}.id", key), &token.id));
  std::string_view content;
  if (entry["content"].get(content) != simdjson::SUCCESS || content.empty() ||
      content.size() > kMaxAddedTokenBytes) {
    return Corrupt(fmt::format("{}.content", key),
                   fmt::format("a text of 1 to {} bytes", kMaxAddedTokenBytes),
                   Shown(entry["content"]));
  }
  token.content = content;
  RETURN_IF_ERROR(ReadFlag(entry, "special", key, &token.is_special));
  RETURN_IF_ERROR(ReadFlag(entry, "normalized", key, &token.is_normalized));
  RETURN_IF_ERROR(ReadFlag(entry, "single_word", key, &token.is_single_word));
  RETURN_IF_ERROR(ReadFlag(entry, "lstrip", key, &token.strips_left));
  RETURN_IF_ERROR(ReadFlag(entry, "rstrip", key, &token.strips_right));
  if (!added_.emplace(token.content, token.id).second) {
    return Corrupt(fmt::format("{}.content", key), "a name that no other added token has",
                   Quoted(content));
  }
  if (file_.vocabulary.AddLiteral(token.id, content) != Vocabulary::AddResult::kAdded) {
    return Corrupt(
        fmt::format("{}.id", key), "an id that no other added token has",
        fmt::format("{}, which is {}", token.id.value, Quoted(file_.vocabulary.Bytes(token.id))));
  }
  file_.added_tokens.push_back(std::move(token));
  return Status::Ok();
}

Status FileReader::ReadAddedTokens(const Found& found) {
  if (IsAbsent(found)) return Status::Ok();
  array tokens;
  RETURN_IF_ERROR(ReadArray(found, "added_tokens", &tokens));
  size_t token_idx = 0;
  for (const element item : tokens) {
    const std::string key = fmt::format("added_tokens[{}]", token_idx++);
    object entry;
    RETURN_IF_ERROR(ReadObject(Wrap(item), key, &entry));
    RETURN_IF_ERROR(ReadAddedToken(entry, key));
  }
  return Status::Ok();
}

// A word that is an added token too stays one that merges do not build: text is text.
Status FileReader::AddVocabularyEntry(std::string_view spelling, TokenId id) {
  const std::optional<std::string> bytes = BytesOfSpelling(spelling);
  if (spelling.empty()) return Corrupt("model.vocab", "names that are not empty", "\"\"");
  if (file_.vocabulary.Has(id) || !bytes) {
    const auto it = added_.find(std::string(spelling));
    if (it != added_.end() && it->second == id) return Status::Ok();
    if (it != added_.end()) {
      return Corrupt(fmt::format("model.vocab[{}]", Quoted(spelling)),
                     fmt::format("{} as in added_tokens", it->second.value),
                     std::to_string(id.value));
    }
  }
  const Vocabulary::AddResult result =
      bytes ? file_.vocabulary.AddWord(id, *bytes) : file_.vocabulary.AddLiteral(id, spelling);
  switch (result) {
    case Vocabulary::AddResult::kAdded:
      return Status::Ok();
    case Vocabulary::AddResult::kIdTaken:
      return Corrupt(fmt::format("model.vocab[{}]", Quoted(spelling)), "an id of its own",
                     fmt::format("{}, which is {}", id.value, Quoted(file_.vocabulary.Bytes(id))));
    case Vocabulary::AddResult::kBytesTaken:
      return Corrupt("model.vocab", "each word once", Quoted(spelling) + " twice");
  }
  return Status::Ok();
}

Status FileReader::ReadVocabulary(const object& vocab) {
  size_t num_bytes = 0;
  int num_words = 0;
  for (const auto& entry : vocab) {
    num_bytes += entry.key.size();
    ++num_words;
  }
  if (num_words > kMaxTokenIds) {
    return Corrupt("model.vocab", fmt::format("at most {} words", kMaxTokenIds),
                   std::to_string(num_words));
  }
  file_.vocabulary.Reserve(num_words, num_bytes);
  for (const auto& entry : vocab) {
    TokenId id;
    int64_t value = -1;  // read without a key first: making the key of each word takes long
    if (entry.value.get(value) == simdjson::SUCCESS && value >= 0 && value < kMaxTokenIds) {
      id = TokenId{static_cast<int32_t>(value)};
    } else {
      RETURN_IF_ERROR(
          ReadId(Wrap(entry.value), fmt::format("model.vocab[{}]", Quoted(entry.key)), &id));
    }
    RETURN_IF_ERROR(AddVocabularyEntry(entry.key, id));
  }
  // Added tokens spelled like a word of another id.
  for (const auto& [content, id] : added_) {
    const std::optional<std::string> bytes = BytesOfSpelling(content);
    const TokenId word = bytes ? file_.vocabulary.Find(*bytes) : kNoToken;
    if (word != kNoToken) {
      return Corrupt(fmt::format("model.vocab[{}]", Quoted(content)),
                     fmt::format("{} as in added_tokens", id.value), std::to_string(word.value));
    }
  }
  return Status::Ok();
}

Status FileReader::AddMerge(std::string_view left, std::string_view right, size_t merge_idx) {
  BpeMerge merge;
  std::string merged_bytes;
  for (const auto& [spelling, id] :
       {std::pair{left, &merge.left}, std::pair{right, &merge.right}}) {
    const std::optional<std::string> bytes = BytesOfSpelling(spelling);
    if (bytes) *id = file_.vocabulary.Find(*bytes);
    if (*id == kNoToken) {
      if (added_.contains(std::string(spelling))) return Status::Ok();
      return Corrupt(fmt::format("model.merges[{}]", merge_idx), "words of model.vocab",
                     Quoted(spelling));
    }
    merged_bytes += *bytes;
  }
  // Trainers number words in the order of the merges that build them.
  merge.merged = file_.merges.empty() ? kNoToken : TokenId{file_.merges.back().merged.value + 1};
  if (!file_.vocabulary.IsWord(merge.merged, merged_bytes)) {
    merge.merged = file_.vocabulary.Find(merged_bytes);
  }
  if (merge.merged == kNoToken) {
    const std::string merged = fmt::format("{}{}", left, right);
    if (added_.contains(merged)) return Status::Ok();
    return Corrupt(fmt::format("model.merges[{}]", merge_idx), "a merge that is a word",
                   Quoted(merged));
  }
  file_.merges.push_back(merge);
  return Status::Ok();
}

Status FileReader::ReadMerges(const array& merges) {
  size_t merge_idx = 0;
  for (const element item : merges) {
    std::string_view text, left, right;
    array pair;
    bool is_sound = false;
    if (item.get(text) == simdjson::SUCCESS) {
      const size_t space = text.find(' ');
      is_sound = space != std::string_view::npos && text.find(' ', space + 1) == text.npos;
      if (is_sound) {
        left = text.substr(0, space);
        right = text.substr(space + 1);
      }
    } else if (item.get(pair) == simdjson::SUCCESS && pair.size() == 2) {
      is_sound =
          pair.at(0).get(left) == simdjson::SUCCESS && pair.at(1).get(right) == simdjson::SUCCESS;
    }
    if (!is_sound || left.empty() || right.empty()) {
      return Corrupt(fmt::format("model.merges[{}]", merge_idx),
                     "\"left right\" or [\"left\", \"right\"]", Shown(Wrap(item)));
    }
    RETURN_IF_ERROR(AddMerge(left, right, merge_idx));
    ++merge_idx;
  }
  return Status::Ok();
}

bool FileReader::HasAllBytesOfUtf8() const {
  for (int byte = 0; byte < 0xF5; ++byte) {
    const char c = static_cast<char>(byte);
    if (byte == 0xC0 || byte == 0xC1) continue;  // these and those from F5 on never occur
    if (file_.vocabulary.Find(std::string_view(&c, 1)) == kNoToken) return false;
  }
  return true;
}

// What happens to bytes that are no words may stay open when there are none.
Status FileReader::CheckUnknowns(const object& model) const {
  if (HasAllBytesOfUtf8()) return Status::Ok();
  if (!IsAbsent(model["unk_token"])) {
    return Unsupported("model.unk_token", "null where bytes have no word", model["unk_token"]);
  }
  if (!IsAbsent(model["byte_fallback"]) && !IsFalse(model["byte_fallback"])) {
    return Unsupported("model.byte_fallback", "false where bytes have no word",
                       model["byte_fallback"]);
  }
  return Status::Ok();
}

Status FileReader::ReadModel(const object& model) {
  if (!IsString(model["type"], "BPE")) return Unsupported("model.type", "\"BPE\"", model["type"]);
  double dropout = 0;
  if (!IsAbsent(model["dropout"]) &&
      (model["dropout"].get(dropout) != simdjson::SUCCESS || dropout != 0)) {
    return Unsupported("model.dropout", "none", model["dropout"]);
  }
  for (const std::string_view affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!IsAbsent(model[affix]) && !IsString(model[affix], "")) {
      return Unsupported(fmt::format("model.{}", affix), "none", model[affix]);
    }
  }
  RETURN_IF_ERROR(ReadFlag(model, "ignore_merges", "model", &file_.bpe_options.ignore_merges));
  object vocab;
  RETURN_IF_ERROR(ReadObject(model["vocab"], "model.vocab", &vocab));
  RETURN_IF_ERROR(ReadVocabulary(vocab));
  RETURN_IF_ERROR(CheckUnknowns(model));
  array merges;
  RETURN_IF_ERROR(ReadArray(model["merges"], "model.merges", &merges));
  return ReadMerges(merges);
}

Result<TokenizerFile> FileReader::Read(std::string_view text) {
  simdjson::dom::parser parser;
  element document;
  // An empty text may have no place, which the parser does not bear.
  const simdjson::error_code error =
      text.empty() ? simdjson::EMPTY : parser.parse(text.data(), text.size()).get(document);
  if (error) {
    return Status::Corrupt(
        fmt::format("{}: expected JSON, found: {}", what_, simdjson::error_message(error)));
  }
  object root, model;
  RETURN_IF_ERROR(ReadObject(Wrap(document), "the file", &root));
  RETURN_IF_ERROR(CheckNormalizer(root["normalizer"]));
  RETURN_IF_ERROR(ReadPreTokenizer(root));
  if (!IsAbsent(root["decoder"]) && !IsString(root["decoder"]["type"], "ByteLevel")) {
    return Unsupported("decoder.type", "ByteLevel", root["decoder"]["type"]);
  }
  RETURN_IF_ERROR(ReadAddedTokens(root["added_tokens"]));
  RETURN_IF_ERROR(ReadObject(root["model"], "model", &model));
  RETURN_IF_ERROR(ReadModel(model));
  return std::move(file_);
}

}  // namespace

Result<TokenizerFile> ParseTokenizerFile(std::string_view text, std::string_view what) {
  return FileReader(what).Read(text);
}

}  // namespace hadal
