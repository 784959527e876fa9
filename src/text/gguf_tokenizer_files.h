// The tokenizer of a GGUF file written as a model folder holds it.
#pragma once

#include <string>

#include "base/status.h"
#include "formats/gguf.h"

namespace hadal {

struct TokenizerFiles {
  std::string tokenizer;  // the text of tokenizer.json
  std::string config;     // of tokenizer_config.json: begin and end, the chat template
};

// Tokenizer::Load of a folder with these files gives what it gives of the GGUF file. Errors as of
// ReadGgufTokenizer.
Result<TokenizerFiles> MakeTokenizerFiles(const GgufFile& file, const std::string& what);

}  // namespace hadal
