#include "text/gguf_tokenizer.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "formats/gguf_keys.h"
#include "text/byte_alphabet.h"

namespace hadal {
namespace {

// tokenizer.ggml.token_type.
constexpr int kControl = 3, kUserDefined = 4, kUnused = 5;

// Control tokens that the published vocabularies do not mark as special: they stay in the text that
// people see, and whoever parses answers looks for them. The type in the file does not tell.
// Specification, 9.4.
bool IsSpecial(std::string_view content, int type) {
  if (type != kControl) return false;
  for (const std::string_view word :
       {"User", "Assistant", "fim▁", "tool▁", "search▁", "think", "completion", "｜DSML｜"}) {
    if (content.find(word) != std::string_view::npos) return false;
  }
  return true;
}

class Reader {
 public:
  Reader(const GgufFile& file, const std::string& what)
      : gguf_(file), keys_(file, "tokenizer.ggml.", what), what_(what) {}

  Result<GgufTokenizer> Run() {
    if (!keys_.Has("tokens") && !keys_.Has("model")) {
      return Status::NotFound(
          fmt::format("{}: tokenizer.ggml.tokens: expected a list, found nothing", what_));
    }
    RETURN_IF_ERROR(CheckModel());
    ASSIGN_OR_RETURN(tokens_, TextList("tokens"));
    if (tokens_.empty() || tokens_.size() > static_cast<size_t>(kMaxTokenIds)) {
      return keys_.Fault("tokens", fmt::format("1 to {} tokens", kMaxTokenIds),
                         std::to_string(tokens_.size()));
    }
    RETURN_IF_ERROR(ReadTypes());
    RETURN_IF_ERROR(ReadFamily());
    RETURN_IF_ERROR(ReadVocabulary());
    RETURN_IF_ERROR(ReadMerges());
    RETURN_IF_ERROR(ReadId("bos_token_id", &found_.bos));
    RETURN_IF_ERROR(ReadId("eos_token_id", &found_.eos));
    ASSIGN_OR_RETURN(const auto add_bos, keys_.Bool("add_bos_token"));
    found_.add_bos_token = add_bos.value_or(true);
    ASSIGN_OR_RETURN(auto text, GgufKeys(gguf_, "tokenizer.", what_).Text("chat_template"));
    if (text) found_.chat_template = *std::move(text);
    return std::move(found_);
  }

 private:
  Status CheckModel() {
    ASSIGN_OR_RETURN(const auto model, keys_.Text("model"));
    if (model == "gpt2") return Status::Ok();
    return Status::Unsupported(
        fmt::format("{}: tokenizer.ggml.model: expected \"gpt2\" (byte-level BPE), found {}", what_,
                    model ? Quoted(*model) : "nothing"));
  }

  Result<const GgufArray*> List(std::string_view key, bool wants_text) {
    const GgufValue* value = gguf_.Find("tokenizer.ggml." + std::string(key));
    const GgufArray* list = value == nullptr ? nullptr : value->AsArray();
    if (list == nullptr) {
      return keys_.Fault(key, "a list", value == nullptr ? "nothing" : "another value");
    }
    if ((list->element_type == GgufType::kString) != wants_text) {
      return keys_.Fault(key, wants_text ? "a list of texts" : "a list of integers",
                         "a list of another type");
    }
    return list;
  }

  Result<std::vector<std::string_view>> TextList(std::string_view key) {
    ASSIGN_OR_RETURN(const GgufArray* list, List(key, /*wants_text=*/true));
    return list->Strings();
  }

  // Without types all tokens are words.
  Status ReadTypes() {
    types_.assign(tokens_.size(), 1);
    if (!keys_.Has("token_type")) return Status::Ok();
    ASSIGN_OR_RETURN(const GgufArray* list, List("token_type", /*wants_text=*/false));
    const bool is_sound =
        (list->element_type == GgufType::kI32 || list->element_type == GgufType::kU32) &&
        list->count == tokens_.size();
    if (!is_sound) {
      return keys_.Fault("token_type",
                         fmt::format("a list of {} 32-bit integers, one per token", tokens_.size()),
                         fmt::format("{} of another type or number", list->count));
    }
    std::memcpy(types_.data(), list->bytes.data(), types_.size() * sizeof(int32_t));
    return Status::Ok();
  }

  // Old files say nothing, or "default": then the vocabulary tells.
  Status ReadFamily() {
    ASSIGN_OR_RETURN(const auto name, keys_.Text("pre"));
    PreTokenizerFamily& family = found_.file.family;
    if (!name || *name == "default") {
      const bool is_llm = tokens_.size() <= 102400 && !HasToken("<｜▁pad▁｜>");
      family = is_llm ? PreTokenizerFamily::kDeepSeekLlm : PreTokenizerFamily::kDeepSeekV3;
    } else if (*name == "deepseek-v3") {
      family = PreTokenizerFamily::kDeepSeekV3;
    } else if (*name == "deepseek-llm") {
      family = PreTokenizerFamily::kDeepSeekLlm;
    } else if (*name == "deepseek-coder") {
      family = PreTokenizerFamily::kDeepSeekCoder;
    } else {
      return Status::Unsupported(fmt::format(
          "{}: tokenizer.ggml.pre: expected deepseek-v3, deepseek-llm or deepseek-coder, found {}",
          what_, Quoted(*name)));
    }
    return Status::Ok();
  }

  bool HasToken(std::string_view text) const {
    return std::find(tokens_.begin(), tokens_.end(), text) != tokens_.end();
  }

  Status ReadVocabulary() {
    Vocabulary& vocabulary = found_.file.vocabulary;
    size_t num_bytes = 0;
    for (const std::string_view token : tokens_) num_bytes += token.size();
    vocabulary.Reserve(static_cast<int>(tokens_.size()), num_bytes);
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const TokenId id{static_cast<int32_t>(i)};
      if (types_[i] == kUnused || tokens_[i].empty()) continue;
      const Status status = types_[i] == kControl || types_[i] == kUserDefined
                                ? AddMark(id, tokens_[i], types_[i])
                                : AddWord(id, tokens_[i]);
      RETURN_IF_ERROR(status);
    }
    return Status::Ok();
  }

  Status TokenFault(TokenId id, std::string_view expected) const {
    return keys_.Fault(fmt::format("tokens[{}]", id.value), expected,
                       Quoted(tokens_[static_cast<size_t>(id.value)]));
  }

  Status AddMark(TokenId id, std::string_view content, int type) {
    if (content.size() > kMaxAddedTokenBytes || !IsValidUtf8(content)) {
      return TokenFault(id, fmt::format("UTF-8 of at most {} bytes", kMaxAddedTokenBytes));
    }
    // A mark of the same name as one before it can never be found.
    if (!marks_.emplace(content).second) return TokenFault(id, "a name that no other mark has");
    if (found_.file.vocabulary.AddLiteral(id, content) != Vocabulary::AddResult::kAdded) {
      return TokenFault(id, "an id of its own");
    }
    found_.file.added_tokens.push_back(
        {.id = id, .content = std::string(content), .is_special = IsSpecial(content, type)});
    return Status::Ok();
  }

  Status AddWord(TokenId id, std::string_view spelling) {
    const std::optional<std::string> bytes = BytesOfSpelling(spelling);
    const Vocabulary::AddResult result = bytes ? found_.file.vocabulary.AddWord(id, *bytes)
                                               : found_.file.vocabulary.AddLiteral(id, spelling);
    if (result == Vocabulary::AddResult::kAdded) return Status::Ok();
    return TokenFault(id, "each word once");
  }

  // Nothing when it is no word.
  std::optional<TokenId> WordOf(std::string_view spelling, std::string* bytes) const {
    const std::optional<std::string> decoded = BytesOfSpelling(spelling);
    if (!decoded) return std::nullopt;
    *bytes += *decoded;
    const TokenId id = found_.file.vocabulary.Find(*decoded);
    return id == kNoToken ? std::nullopt : std::optional(id);
  }

  Status ReadMerges() {
    ASSIGN_OR_RETURN(const std::vector<std::string_view> merges, TextList("merges"));
    found_.file.merges.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      const size_t space = merges[i].find(' ');
      std::string bytes;
      std::optional<TokenId> left, right;
      if (space != std::string_view::npos) {
        left = WordOf(merges[i].substr(0, space), &bytes);
        right = WordOf(merges[i].substr(space + 1), &bytes);
      }
      const TokenId merged = left && right ? found_.file.vocabulary.Find(bytes) : kNoToken;
      if (merged == kNoToken) {
        return keys_.Fault(fmt::format("merges[{}]", i),
                           "\"left right\" of two words that make a third", Quoted(merges[i]));
      }
      found_.file.merges.push_back({*left, *right, merged});
    }
    return Status::Ok();
  }

  Status ReadId(std::string_view key, std::optional<TokenId>* id) {
    ASSIGN_OR_RETURN(const auto value, keys_.Int(key, 0, static_cast<int64_t>(tokens_.size()) - 1));
    if (value) *id = TokenId{static_cast<int32_t>(*value)};
    return Status::Ok();
  }

  const GgufFile& gguf_;
  GgufKeys keys_;
  const std::string& what_;
  std::vector<std::string_view> tokens_;
  std::vector<int32_t> types_;
  std::set<std::string_view> marks_;
  GgufTokenizer found_;
};

}  // namespace

Result<GgufTokenizer> ReadGgufTokenizer(const GgufFile& file, const std::string& what) {
  return Reader(file, what).Run();
}

}  // namespace hadal
