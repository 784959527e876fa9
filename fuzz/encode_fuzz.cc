// Any bytes as a text and as a prompt of several parts: decoding gives the repaired text back, text
// never becomes a control token, and nothing depends on how parts of one kind are cut.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "sys/mapped_file.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

std::unique_ptr<Tokenizer> ParseFile(const char* path) {
  const auto text = ReadFile(std::string(HADAL_SOURCE_DIR) + path, 1 << 26);
  HADAL_CHECK(text.ok());
  auto tokenizer = Tokenizer::Parse(text.value(), path);
  HADAL_CHECK(tokenizer.ok());
  return std::move(tokenizer).value();
}

// The first byte of each part says its kind and length.
Prompt CutIntoParts(std::string_view bytes) {
  Prompt prompt;
  while (!bytes.empty()) {
    const auto head = static_cast<uint8_t>(bytes[0]);
    const std::string_view part = bytes.substr(1, head >> 1);
    prompt.push_back({std::string(part), (head & 1) != 0});
    bytes.remove_prefix(1 + part.size());
  }
  return prompt;
}

// `prompt` with every text made valid on its own, cut in two.
Prompt CutAgain(const Prompt& prompt) {
  Prompt halves;
  for (const PromptPart& part : prompt) {
    halves.push_back({part.text.substr(0, part.text.size() / 2), part.is_markup});
    halves.push_back({part.text.substr(part.text.size() / 2), part.is_markup});
  }
  return halves;
}

void Check(const Tokenizer& tokenizer, std::string_view bytes, bool has_letters) {
  const std::vector<TokenId> ids = tokenizer.Encode(bytes);
  HADAL_CHECK(tokenizer.Decode(ids) == RepairUtf8(bytes));
  HADAL_CHECK(tokenizer.Decode(tokenizer.EncodeWithSpecials(bytes)) == RepairUtf8(bytes));
  for (const TokenId id : ids) HADAL_CHECK(has_letters || !tokenizer.IsAddedToken(id));
  const Prompt prompt = CutIntoParts(bytes);
  HADAL_CHECK(tokenizer.Encode(prompt) == tokenizer.Encode(CutAgain(prompt)));
}

}  // namespace
}  // namespace hadal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  static const auto kV3 = ParseFile("/models/tiny/tokenizer.json");
  static const auto kLlm = ParseFile("/tests/golden/text/tokenizer_llm_reduced.json");
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Check(*kV3, bytes, /*has_letters=*/false);
  Check(*kLlm, bytes, /*has_letters=*/true);
  return 0;
}
