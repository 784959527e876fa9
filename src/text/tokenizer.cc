#include "text/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "formats/gguf_path.h"
#include "sys/mapped_file.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/gguf_tokenizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_file.h"

namespace hadal {

struct Tokenizer::State {
  explicit State(TokenizerFile file)
      : pre_tokenizer(file.family),
        bpe(std::move(file.vocabulary), file.merges, file.bpe_options),
        added(std::move(file.added_tokens)),
        kinds(static_cast<size_t>(bpe.vocabulary().size())) {
    for (const AddedToken& token : added.tokens()) {
      kinds[static_cast<size_t>(token.id.value)] = token.is_special ? kSpecial : kAdded;
    }
  }

  // `text` is valid UTF-8; added tokens are found in the `markup` parts of it.
  std::vector<TokenId> Encode(std::string_view text, std::span<const TextRange> markup) const;

  enum Kind : uint8_t { kWord, kAdded, kSpecial };
  Kind kind(TokenId id) const {
    const auto index = static_cast<size_t>(id.value);
    return id.value >= 0 && index < kinds.size() ? kinds[index] : kWord;
  }

  PreTokenizer pre_tokenizer;
  Bpe bpe;
  AddedTokens added;
  std::vector<Kind> kinds;  // by id
  // A GGUF file lists unused ids too: they have no bytes, but what draws tokens by the file's own
  // list may draw them.
  int num_listed_ids = 0;
  std::optional<TokenId> bos, eos;
  bool add_bos_token = false;
  std::string chat_template;
};

namespace {

// The published files have 5 to 10 MB.
constexpr int64_t kMaxTokenizerFileBytes = int64_t{256} << 20;
constexpr int64_t kMaxConfigFileBytes = int64_t{16} << 20;

// bos_token or eos_token: a name, or an object with the name as its content.
Result<std::optional<TokenId>> ReadTokenName(const Tokenizer& tokenizer, const Json& config,
                                             std::string_view key, std::string_view what) {
  if (!HasValue(config, key)) return std::optional<TokenId>();
  const Json& value = *config.find(key);
  std::string name;
  if (value.is_object()) {
    ASSIGN_OR_RETURN(name, ReadString(value, "content", fmt::format("{}: {}", what, key)));
  } else {
    ASSIGN_OR_RETURN(name, ReadString(config, key, what));
  }
  const std::optional<TokenId> id = tokenizer.FindAddedToken(name);
  if (id) return id;
  return Status::Corrupt(
      fmt::format("{}: {}: expected the name of an added token of tokenizer.json, found {:?}", what,
                  key, name));
}

// A text, or a list of named texts of which "default" counts.
Result<std::string> ReadTemplate(const Json& config, std::string_view what) {
  if (!HasValue(config, "chat_template")) return std::string();
  const Json& value = *config.find("chat_template");
  if (!value.is_array()) return ReadString(config, "chat_template", what);
  for (const Json& entry : value) {
    ASSIGN_OR_RETURN(const std::string name, ReadString(entry, "name", what));
    if (name == "default") return ReadString(entry, "template", what);
  }
  return std::string();
}

}  // namespace

std::string PromptText(const Prompt& prompt) {
  std::string text;
  for (const PromptPart& part : prompt) text += part.text;
  return text;
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::Parse(std::string_view tokenizer_json,
                                                    std::string_view what) {
  ASSIGN_OR_RETURN(TokenizerFile file, ParseTokenizerFile(tokenizer_json, what));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::make_unique<State>(std::move(file))));
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::LoadGguf(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  ASSIGN_OR_RETURN(const GgufFile file, ParseGguf(mapped.bytes(), path));
  ASSIGN_OR_RETURN(GgufTokenizer found, ReadGgufTokenizer(file, path));
  auto state = std::make_unique<State>(std::move(found.file));
  state->bos = found.bos;
  state->eos = found.eos;
  state->add_bos_token = found.add_bos_token;
  state->chat_template = std::move(found.chat_template);
  state->num_listed_ids = static_cast<int>(file.Find("tokenizer.ggml.tokens")->AsArray()->count);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(state)));
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder + "/tokenizer.json", error)) {
    ASSIGN_OR_RETURN(const std::optional<std::string> gguf, FindGgufModel(folder));
    if (gguf) return LoadGguf(*gguf);
  }
  const std::string path = folder + "/tokenizer.json";
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTokenizerFileBytes));
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, Parse(text, path));
  State& state = *tokenizer->state_;

  const std::string config_path = folder + "/tokenizer_config.json";
  const Result<std::string> config_text = ReadFile(config_path, kMaxConfigFileBytes);
  if (config_text.ok()) {
    ASSIGN_OR_RETURN(const Json config, ParseJson(config_text.value(), config_path));
    if (!config.is_object()) {
      return Status::Corrupt(fmt::format("{}: expected an object", config_path));
    }
    ASSIGN_OR_RETURN(state.bos, ReadTokenName(*tokenizer, config, "bos_token", config_path));
    ASSIGN_OR_RETURN(state.eos, ReadTokenName(*tokenizer, config, "eos_token", config_path));
    ASSIGN_OR_RETURN(state.add_bos_token, ReadBoolOr(config, "add_bos_token", false, config_path));
    ASSIGN_OR_RETURN(state.chat_template, ReadTemplate(config, config_path));
  } else if (config_text.status().code() != StatusCode::kNotFound) {
    return config_text.status();
  }

  Result<std::string> chat_template =
      ReadFile(folder + "/chat_template.jinja", kMaxConfigFileBytes);
  if (chat_template.ok()) {
    state.chat_template = std::move(chat_template).value();
  } else if (chat_template.status().code() != StatusCode::kNotFound) {
    return chat_template.status();
  }
  return tokenizer;
}

std::vector<TokenId> Tokenizer::State::Encode(std::string_view text,
                                              std::span<const TextRange> markup) const {
  std::vector<AddedTokenMatch> matches;
  added.Find(text, markup, &matches);
  // The rest is cut into words across the borders of markup and text, as the reference cuts the
  // rendered prompt, which does not show where they are.
  std::vector<TokenId> ids;
  std::vector<size_t> ends;
  BpeScratch scratch;
  const auto encode_words = [&](TextRange range) {
    const std::string_view run = text.substr(range.begin, range.end - range.begin);
    pre_tokenizer.Split(run, &ends);
    size_t begin = 0;
    for (const size_t end : ends) {
      bpe.Encode(run.substr(begin, end - begin), &scratch, &ids);
      begin = end;
    }
  };
  size_t from = 0;
  for (const AddedTokenMatch& match : matches) {
    encode_words({from, match.range.begin});
    ids.push_back(match.id);
    from = match.range.end;
  }
  encode_words({from, text.size()});
  return ids;
}

std::vector<TokenId> Tokenizer::Encode(std::string_view text) const {
  if (IsValidUtf8(text)) return state_->Encode(text, {});
  return state_->Encode(RepairUtf8(text), {});
}

std::vector<TokenId> Tokenizer::EncodeWithSpecials(std::string_view text) const {
  const std::string repaired = IsValidUtf8(text) ? std::string() : RepairUtf8(text);
  if (!repaired.empty()) text = repaired;
  const TextRange all{0, text.size()};
  return state_->Encode(text, std::span(&all, 1));
}

std::vector<TokenId> Tokenizer::Encode(const Prompt& prompt) const {
  std::string text;
  std::vector<TextRange> markup;
  for (size_t i = 0; i < prompt.size();) {
    const bool is_markup = prompt[i].is_markup;
    std::string run;
    for (; i < prompt.size() && prompt[i].is_markup == is_markup; ++i) run += prompt[i].text;
    const size_t begin = text.size();
    text += IsValidUtf8(run) ? run : RepairUtf8(run);
    if (is_markup && text.size() > begin) markup.push_back({begin, text.size()});
  }
  return state_->Encode(text, markup);
}

std::string Tokenizer::Decode(std::span<const TokenId> ids) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += TokenBytes(id);
  return bytes;
}

std::string_view Tokenizer::TokenBytes(TokenId id) const {
  return state_->bpe.vocabulary().Bytes(id);
}

std::optional<TokenId> Tokenizer::FindAddedToken(std::string_view content) const {
  const AddedToken* token = state_->added.FindContent(content);
  return token == nullptr ? std::nullopt : std::optional<TokenId>(token->id);
}

bool Tokenizer::IsAddedToken(TokenId id) const { return state_->kind(id) != State::kWord; }
bool Tokenizer::IsSpecial(TokenId id) const { return state_->kind(id) == State::kSpecial; }
int Tokenizer::vocab_size() const {
  return std::max(state_->bpe.vocabulary().size(), state_->num_listed_ids);
}
bool Tokenizer::HasToken(TokenId id) const { return state_->bpe.vocabulary().Has(id); }
std::optional<TokenId> Tokenizer::bos() const { return state_->bos; }
std::optional<TokenId> Tokenizer::eos() const { return state_->eos; }
bool Tokenizer::add_bos_token() const { return state_->add_bos_token; }
const std::string& Tokenizer::chat_template() const { return state_->chat_template; }

}  // namespace hadal
