// Which bytes may come next in a JSON object (RFC 8259), one byte at a time. For answers that must
// be JSON: a token may come if all its bytes may. Stricter than the standard where that keeps an
// answer useful: white space is bounded, so that it cannot go on for ever; exponents have two
// digits at most and \u writes no surrogates, because readers refuse what they cannot represent;
// characters are whole UTF-8 sequences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hadal {

class JsonAutomaton {
 public:
  // False, and the state is undefined, when `byte` may not come.
  [[nodiscard]] bool Push(uint8_t byte);
  [[nodiscard]] bool Push(std::string_view bytes) {
    for (const char byte : bytes)
      if (!Push(static_cast<uint8_t>(byte))) return false;
    return true;
  }

  // The object is whole: nothing may follow.
  bool is_done() const { return state_ == State::kDone; }

  // Equal for states that allow the same texts.
  std::string Key() const;

 private:
  enum class State : uint8_t {
    kStart,           // the object's brace
    kFirstKey,        // a key, or the end of the object
    kKey,             // a key, behind a comma
    kColon,           // behind a key
    kValue,           // any value
    kFirstItem,       // a value, or the end of the list
    kAfterValue,      // a comma, or the end of what is open
    kString,          // inside a string, and so on down to kHex
    kEscape,          // behind a backslash
    kHex,             // behind \u
    kMinus,           // behind a minus sign
    kZero,            // a leading zero
    kInteger,         // digits
    kPoint,           // behind a decimal point
    kFraction,        // digits behind it
    kExponent,        // behind e
    kExponentSign,    // behind its sign
    kExponentDigit,   // one digit of it
    kExponentDigits,  // two
    kLiteral,         // inside true, false, null
    kDone,
  };

  bool PushString(uint8_t byte);
  bool PushHex(uint8_t byte);
  bool PushNumber(uint8_t byte);
  bool PushStructure(uint8_t byte);
  bool BeginValue(uint8_t byte);
  bool Open(char bracket);
  bool Close(char bracket);
  bool TakeBlank();

  State state_ = State::kStart;
  std::string open_;                // brackets, outermost first
  bool is_key_ = false;             // of the string at hand
  uint8_t num_hex_ = 0;             // digits read behind \u
  bool is_near_surrogate_ = false;  // the first of them was a d
  uint8_t num_tail_bytes_ = 0;      // that the character at hand still needs
  uint8_t num_blanks_ = 0;          // in a row
  std::string_view literal_;        // what is left of it
};

}  // namespace hadal
