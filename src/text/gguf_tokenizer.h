// The tokenizer of a GGUF file: the keys tokenizer.ggml.* and tokenizer.chat_template.
// Specification, 8.5.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/types.h"
#include "formats/gguf.h"
#include "text/tokenizer_file.h"

namespace hadal {

struct GgufTokenizer {
  TokenizerFile file;
  std::optional<TokenId> bos, eos;
  bool add_bos_token = false;
  std::string chat_template;  // empty when there is none
};

// `what` names the file. kNotFound when it has no tokenizer; kUnsupported for a kind other than
// byte-level BPE with DeepSeek's patterns; kCorrupt with key, expected and found.
Result<GgufTokenizer> ReadGgufTokenizer(const GgufFile& file, const std::string& what);

}  // namespace hadal
