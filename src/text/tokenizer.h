// tokenizer.json: text to ids and back. Byte-level BPE; immutable after Load, any thread.
// Text of a message never becomes a control token: only parts marked as markup are searched for
// added tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace hadal {

// A piece of a prompt: markup is written by a template and may name added tokens, text comes from
// people.
struct PromptPart {
  std::string text;
  bool is_markup = false;
};
using Prompt = std::vector<PromptPart>;

// The parts joined.
std::string PromptText(const Prompt& prompt);

class Tokenizer {
 public:
  // Reads tokenizer.json and tokenizer_config.json of `folder`; or, where `folder` is a GGUF model
  // (a file, or a folder without tokenizer.json), the keys of that. kNotFound when there is no
  // tokenizer; kCorrupt with file, key, expected and found.
  static Result<std::unique_ptr<Tokenizer>> Load(const std::string& folder);

  // From the text of a tokenizer.json; `what` names it in errors.
  static Result<std::unique_ptr<Tokenizer>> Parse(std::string_view tokenizer_json,
                                                  std::string_view what);

  ~Tokenizer();

  // Ids of plain text: added tokens in it are text. Ill-formed UTF-8 becomes U+FFFD first. No begin
  // token is added. Linear in the length, constant stack.
  std::vector<TokenId> Encode(std::string_view text) const;

  // The same, but added tokens written in the text become their ids.
  std::vector<TokenId> EncodeWithSpecials(std::string_view text) const;

  // Parts that follow each other with the same marking are joined before they are cut into words.
  std::vector<TokenId> Encode(const Prompt& prompt) const;

  // Bytes of the ids, added tokens written out; not always valid UTF-8. Ids without a token give
  // nothing.
  std::string Decode(std::span<const TokenId> ids) const;

  // Bytes of one id; empty for an id without a token.
  std::string_view TokenBytes(TokenId id) const;

  // The added token that is spelled so, or nothing.
  std::optional<TokenId> FindAddedToken(std::string_view content) const;
  bool IsAddedToken(TokenId id) const;
  // The `special` flag of the file: skipped when text is decoded for people.
  bool IsSpecial(TokenId id) const;

  // One more than the largest id that has a token. Rows of the head at or above it are padding.
  int vocab_size() const;
  // True when a token of that id exists; ids between added tokens may be holes.
  bool HasToken(TokenId id) const;

  // Of tokenizer_config.json, looked up by content.
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool add_bos_token() const;
  // The Jinja text of tokenizer_config.json or chat_template.jinja; empty when there is none.
  const std::string& chat_template() const;

 private:
  static Result<std::unique_ptr<Tokenizer>> LoadGguf(const std::string& path);

  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hadal
