// Reads tokenizer.json and checks all of it; what comes out can be trusted. The format is that of
// the `tokenizers` library; accepted is the part that DeepSeek's releases use.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace hadal {

struct TokenizerFile {
  Vocabulary vocabulary;  // added tokens included
  std::vector<BpeMerge> merges;
  Bpe::Options bpe_options;
  std::vector<AddedToken> added_tokens;
  PreTokenizerFamily family = PreTokenizerFamily::kDeepSeekV3;
};

// kCorrupt and kUnsupported name the file (`what`), the key, what was expected and what was found.
Result<TokenizerFile> ParseTokenizerFile(std::string_view text, std::string_view what);

}  // namespace hadal
