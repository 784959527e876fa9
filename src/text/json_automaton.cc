#include "text/json_automaton.h"

namespace hadal {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr uint8_t kMaxBlanks = 72;  // a line end and the indentation of a deep object

bool IsDigit(uint8_t byte) { return byte >= '0' && byte <= '9'; }
bool IsBlank(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

}  // namespace

std::string JsonAutomaton::Key() const {
  std::string key = open_;
  for (const int part : {static_cast<int>(state_), static_cast<int>(is_key_),
                         static_cast<int>(num_hex_), static_cast<int>(is_near_surrogate_),
                         static_cast<int>(num_tail_bytes_), static_cast<int>(num_blanks_)}) {
    key += static_cast<char>(part);
  }
  return key.append(literal_);
}

bool JsonAutomaton::Push(uint8_t byte) {
  switch (state_) {
    case State::kString:
      return PushString(byte);
    case State::kEscape:
      if (byte == 'u') {
        state_ = State::kHex;
        num_hex_ = 0;
        is_near_surrogate_ = false;
        return true;
      }
      state_ = State::kString;
      return std::string_view("\"\\/bfnrt").find(static_cast<char>(byte)) != std::string_view::npos;
    case State::kHex:
      return PushHex(byte);
    case State::kLiteral:
      if (static_cast<char>(byte) != literal_.front()) return false;
      literal_.remove_prefix(1);
      if (literal_.empty()) state_ = State::kAfterValue;
      return true;
    case State::kMinus:
    case State::kZero:
    case State::kInteger:
    case State::kPoint:
    case State::kFraction:
    case State::kExponent:
    case State::kExponentSign:
    case State::kExponentDigit:
    case State::kExponentDigits:
      return PushNumber(byte);
    case State::kDone:
      return false;
    default:
      return PushStructure(byte);
  }
}

bool JsonAutomaton::PushString(uint8_t byte) {
  if (num_tail_bytes_ > 0) {
    --num_tail_bytes_;
    return byte >= 0x80 && byte < 0xC0;
  }
  if (byte == '"') {
    state_ = is_key_ ? State::kColon : State::kAfterValue;
  } else if (byte == '\\') {
    state_ = State::kEscape;
  } else if (byte < 0x20 || (byte >= 0x80 && byte < 0xC2) || byte > 0xF4) {
    return false;
  } else if (byte >= 0xC2) {
    num_tail_bytes_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  }
  return true;
}

bool JsonAutomaton::PushHex(uint8_t byte) {
  const bool is_letter = (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
  if (!is_letter && !IsDigit(byte)) return false;
  if (num_hex_ == 0) is_near_surrogate_ = byte == 'd' || byte == 'D';
  if (num_hex_ == 1 && is_near_surrogate_ && !(IsDigit(byte) && byte < '8')) return false;
  if (++num_hex_ == 4) state_ = State::kString;
  return true;
}

bool JsonAutomaton::PushNumber(uint8_t byte) {
  const bool is_digit = IsDigit(byte);
  const bool may_end = state_ == State::kZero || state_ == State::kInteger ||
                       state_ == State::kFraction || state_ == State::kExponentDigit ||
                       state_ == State::kExponentDigits;
  const bool may_have_point = state_ == State::kZero || state_ == State::kInteger;
  const bool may_have_exponent = may_have_point || state_ == State::kFraction;
  if (is_digit) {
    switch (state_) {
      case State::kMinus:
        state_ = byte == '0' ? State::kZero : State::kInteger;
        return true;
      case State::kInteger:
      case State::kFraction:
        return true;
      case State::kPoint:
        state_ = State::kFraction;
        return true;
      case State::kExponent:
      case State::kExponentSign:
        state_ = State::kExponentDigit;
        return true;
      case State::kExponentDigit:
        state_ = State::kExponentDigits;
        return true;
      default:
        return false;
    }
  }
  if (byte == '.' && may_have_point) {
    state_ = State::kPoint;
    return true;
  }
  if ((byte == 'e' || byte == 'E') && may_have_exponent) {
    state_ = State::kExponent;
    return true;
  }
  if ((byte == '+' || byte == '-') && state_ == State::kExponent) {
    state_ = State::kExponentSign;
    return true;
  }
  if (!may_end) return false;
  state_ = State::kAfterValue;
  return PushStructure(byte);
}

bool JsonAutomaton::TakeBlank() { return ++num_blanks_ <= kMaxBlanks; }

bool JsonAutomaton::PushStructure(uint8_t byte) {
  if (IsBlank(byte)) return state_ != State::kStart && TakeBlank();
  num_blanks_ = 0;
  switch (state_) {
    case State::kStart:
      return byte == '{' && Open('{');
    case State::kFirstKey:
      if (byte == '}') return Close('{');
      [[fallthrough]];
    case State::kKey:
      state_ = State::kString;
      is_key_ = true;
      return byte == '"';
    case State::kColon:
      state_ = State::kValue;
      return byte == ':';
    case State::kFirstItem:
      if (byte == ']') return Close('[');
      [[fallthrough]];
    case State::kValue:
      return BeginValue(byte);
    case State::kAfterValue:
      if (byte == '}') return Close('{');
      if (byte == ']') return Close('[');
      state_ = open_.back() == '{' ? State::kKey : State::kValue;
      return byte == ',';
    default:
      return false;
  }
}

bool JsonAutomaton::BeginValue(uint8_t byte) {
  is_key_ = false;
  switch (byte) {
    case '{':
    case '[':
      return Open(static_cast<char>(byte));
    case '"':
      state_ = State::kString;
      return true;
    case '-':
      state_ = State::kMinus;
      return true;
    case '0':
      state_ = State::kZero;
      return true;
    case 't':
    case 'f':
    case 'n':
      state_ = State::kLiteral;
      literal_ = byte == 't' ? "rue" : byte == 'f' ? "alse" : "ull";
      return true;
    default:
      state_ = State::kInteger;
      return byte >= '1' && byte <= '9';
  }
}

bool JsonAutomaton::Open(char bracket) {
  if (open_.size() == kMaxDepth) return false;
  open_.push_back(bracket);
  state_ = bracket == '{' ? State::kFirstKey : State::kFirstItem;
  return true;
}

bool JsonAutomaton::Close(char bracket) {
  if (open_.back() != bracket) return false;
  open_.pop_back();
  state_ = open_.empty() ? State::kDone : State::kAfterValue;
  return true;
}

}  // namespace hadal
