// The byte-level alphabet: tokenizer.json spells each byte as one printable character.
// Specification, 9.1, step 2 (the table of GPT-2's published encoder).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hadal {

// The character that stands for `byte`.
char32_t ByteSymbol(uint8_t byte);

// The bytes that `spelling` stands for; nothing when it has a character outside the alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

}  // namespace hadal
