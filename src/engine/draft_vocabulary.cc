#include "engine/draft_vocabulary.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "base/types.h"

namespace hadal {

Status CheckSameVocabulary(const Tokenizer& model, const Tokenizer& draft,
                           const std::string& draft_path) {
  if (model.vocab_size() != draft.vocab_size()) {
    return Status::InvalidArgument(fmt::format(
        "draft model {}: expected a tokenizer with {} tokens like the model's, found {}",
        draft_path, model.vocab_size(), draft.vocab_size()));
  }
  for (TokenId id{0}; id.value < model.vocab_size(); ++id.value) {
    if (model.TokenBytes(id) == draft.TokenBytes(id) &&
        model.IsAddedToken(id) == draft.IsAddedToken(id))
      continue;
    const auto name = [id](const Tokenizer& tokenizer) {
      return fmt::format("{}{}", Quoted(tokenizer.TokenBytes(id)),
                         tokenizer.IsAddedToken(id) ? " (added)" : "");
    };
    return Status::InvalidArgument(
        fmt::format("draft model {}: token {}: expected {} like the model's, found {}", draft_path,
                    id.value, name(model), name(draft)));
  }
  return Status::Ok();
}

}  // namespace hadal
