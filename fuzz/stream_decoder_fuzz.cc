// Any ids, one by one: each piece is valid UTF-8, and joined they are the repaired whole.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/stream_decoder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  static const auto kTokenizer = Tokenizer::Load(HADAL_SOURCE_DIR "/models/tiny");
  HADAL_CHECK(kTokenizer.ok());
  const Tokenizer& tokenizer = *kTokenizer.value();
  StreamDecoder decoder(&tokenizer);
  std::vector<TokenId> ids;
  std::string joined;
  for (size_t i = 0; i + 2 <= size; i += 2) {
    uint16_t id = 0;
    std::memcpy(&id, data + i, 2);
    // Mostly ids of the vocabulary, where single bytes are; some past its end.
    ids.push_back(TokenId{id % 4 == 0 ? id : id % 300});
    const std::string piece = decoder.Push(ids.back());
    HADAL_CHECK(IsValidUtf8(piece));
    joined += piece;
  }
  joined += decoder.Finish();
  HADAL_CHECK(joined == RepairUtf8(tokenizer.Decode(ids)));
  return 0;
}
