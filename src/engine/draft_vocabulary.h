// Whether a draft model speaks the model's language.
#pragma once

#include <string>

#include "base/status.h"
#include "text/tokenizer.h"

namespace hadal {

// A guess is an id, so every id must mean the same to both. kInvalidArgument names the first
// difference; `draft_path` is the draft model's.
Status CheckSameVocabulary(const Tokenizer& model, const Tokenizer& draft,
                           const std::string& draft_path);

}  // namespace hadal
