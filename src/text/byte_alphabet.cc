#include "text/byte_alphabet.h"

#include <array>

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
  for (size_t i = 0; i < spelling.size(); ++i) {
    // The symbols take one or two bytes; this runs half a million times for one file.
    uint32_t symbol = static_cast<uint8_t>(spelling[i]);
    if (symbol >= 0x80) {
      if (symbol < 0xC2 || symbol >= 0xE0 || ++i == spelling.size()) return std::nullopt;
      const uint32_t tail = static_cast<uint8_t>(spelling[i]);
      if ((tail & 0xC0) != 0x80) return std::nullopt;
      symbol = ((symbol & 0x1F) << 6) | (tail & 0x3F);
    }
    if (symbol >= kNumSymbols || kAlphabet.bytes[symbol] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.bytes[symbol]));
  }
  return bytes;
}

}  // namespace hadal
