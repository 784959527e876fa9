#include "text/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace hadal {
namespace {

constexpr int kNumSymbols = 0x144;  // one more than the largest symbol, U+0143
constexpr bool IsItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint16_t, 256> symbols{};
  std::array<int16_t, kNumSymbols> bytes{};  // -1: not a symbol
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.bytes.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int symbol = IsItself(byte) ? byte : next++;
    alphabet.symbols[byte] = static_cast<uint16_t>(symbol);
    alphabet.bytes[symbol] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

char32_t ByteSymbol(uint8_t byte) { return kAlphabet.symbols[byte]; }

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  while (!spelling.empty()) {
    const DecodedCodePoint point = DecodeCodePoint(spelling);
    if (!point.is_valid || point.value >= kNumSymbols) return std::nullopt;
    const int byte = kAlphabet.bytes[point.value];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    spelling.remove_prefix(static_cast<size_t>(point.length));
  }
  return bytes;
}

}  // namespace hadal
