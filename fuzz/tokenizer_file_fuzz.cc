// Any bytes as tokenizer.json: an error of one line, or a tokenizer that encodes and decodes.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::Parse(text, "fuzz");
  if (!tokenizer.ok()) {
    HADAL_CHECK(tokenizer.status().message().find('\n') == std::string::npos);
    return 0;
  }
  const std::string sample = "ab 12\n<end>\u4e2d\u00fc zz";
  for (const TokenId id : tokenizer.value()->EncodeWithSpecials(sample)) {
    HADAL_CHECK(tokenizer.value()->HasToken(id));
  }
  for (const TokenId id : tokenizer.value()->Encode(sample)) {
    HADAL_CHECK(tokenizer.value()->HasToken(id));
  }
  return 0;
}
