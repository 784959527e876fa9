// Tokens to text, one by one: what is returned is always valid UTF-8, and the joined pieces equal
// the decoded whole.
#pragma once

#include <string>

#include "base/types.h"
#include "text/tokenizer.h"

namespace hadal {

class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  explicit StreamDecoder(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Text that may be shown now. A character that later bytes may finish is held back; bytes that
  // can no longer become one turn into U+FFFD.
  std::string Push(TokenId token);

  // The end: an unfinished character becomes U+FFFD.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  std::string held_;
};

}  // namespace hadal
