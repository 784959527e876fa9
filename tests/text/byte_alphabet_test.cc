#include "text/byte_alphabet.h"

#include <set>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

TEST(ByteAlphabet, IsThatOfTheSpecification) {
  const Json byte_map = ReadGoldenJson("text/spec_examples.json").at("byte_map");
  ASSERT_GE(byte_map.size(), 10u);
  for (const auto& [byte, symbol] : byte_map.items()) {
    const auto expected = std::stoul(symbol.get<std::string>().substr(2), nullptr, 16);
    EXPECT_EQ(ByteSymbol(static_cast<uint8_t>(std::stoul(byte, nullptr, 16))), expected) << byte;
  }
}

TEST(ByteAlphabet, InvertsEveryByte) {
  std::set<char32_t> symbols;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t symbol = ByteSymbol(static_cast<uint8_t>(byte));
    symbols.insert(symbol);
    std::string spelling;
    AppendCodePoint(symbol, &spelling);
    EXPECT_EQ(BytesOfSpelling(spelling), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(symbols.size(), 256u);
}

TEST(ByteAlphabet, RefusesCharactersOutsideIt) {
  EXPECT_EQ(BytesOfSpelling("a b"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("<\uFF5Cx"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\u0144"), std::nullopt);
}

}  // namespace
}  // namespace hadal
