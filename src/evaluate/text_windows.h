// Texts as the windows of token ids that a model is measured on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "text/tokenizer.h"

namespace hadal {

struct WindowOptions {
  int window_tokens = 512;
  int64_t max_tokens = 0;     // 0: all
  bool has_specials = false;  // control tokens written in a text are these, not text
  // Of a list of texts:
  int first_text = 0;
  int num_texts = 0;  // 0: all from first_text on
};

using TokenWindow = std::vector<TokenId>;

// Plain text: cut into windows that follow each other; a last part that fills no window is left
// out, unless it is all there is. No begin token is added.
std::vector<TokenWindow> CutText(const Tokenizer& tokenizer, std::string_view text,
                                 const WindowOptions& options);

// A list of texts: of each the first window_tokens tokens; texts of a single token are left out.
std::vector<TokenWindow> CutTexts(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                                  const WindowOptions& options);

// Windows of a file: a JSON list of strings when its name ends in .json, lines {"text": ...} when
// it ends in .jsonl, plain text otherwise. kInvalidArgument when no window of two tokens is left;
// kCorrupt names file and entry.
Result<std::vector<TokenWindow>> ReadWindows(const Tokenizer& tokenizer, const std::string& path,
                                             const WindowOptions& options);

}  // namespace hadal
